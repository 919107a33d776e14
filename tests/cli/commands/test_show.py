import json

import pytest


def test_the_summary(strobe):
    code, out, err = strobe("show", "RUN", "--width", "80")
    assert (code, err) == (0, "")
    assert "One step takes" in out and "\x1b" not in out
    assert max(map(len, out.splitlines())) <= 80


def test_the_summary_as_json(strobe):
    answer = json.loads(strobe("show", "RUN", "--json")[1])
    assert answer["ok"] and answer["summary"]["recorded"]["steps"] == 2


def test_a_table_as_text(strobe):
    code, out, _ = strobe("show", "RUN", "operator-types", "--top", "2", "--width", "80")
    assert code == 0
    assert out == (
        "                                                          cumulative\n"
        "name         type   calls   total    self    mean  share       share     flops\n"
        "aten::mm     mm         1  180 ns  180 ns  180 ns    38%         38%  360 FLOP\n"
        "aten::addmm  addmm      1  160 ns  160 ns  160 ns    33%         71%  320 FLOP\n"
        "2 of 6 rows; --top 0 shows all\n"
    )


def test_a_table_as_csv(strobe):
    code, out, _ = strobe(
        "show", "RUN", "operators", "--csv", "--columns", "name,self_ns", "--min-time", "160ns"
    )
    assert (code, out) == (
        0,
        "name,self_ns\naten::mm,180\naten::addmm,160\nAddmmBackward0,20\naten::linear,20\n",
    )


def test_steps_as_json_have_every_step_and_every_column_explained(strobe):
    answer = json.loads(strobe("show", "RUN", "steps", "--json")[1])
    assert answer["table"] == "steps" and len(answer["rows"]) == 2
    assert [column["name"] for column in answer["columns"]][:4] == [
        "rank", "step", "ts_ns", "dur_ns",
    ]  # fmt: skip
    assert all(column["doc"] for column in answer["columns"])


def test_tables_lists_them(strobe):
    code, out, _ = strobe("show", "RUN", "tables")
    assert code == 0 and "operator-types" in out and "events" in out


def test_all_steps(strobe):
    few = json.loads(strobe("show", "RUN", "operators", "--json")[1])["rows"]
    many = json.loads(strobe("show", "RUN", "operators", "--json", "--all-steps")[1])["rows"]
    assert len(many) == len(few) + 1


@pytest.mark.parametrize(
    "words, error",
    [
        (["nowhere"], "this run does not exist"),
        (["RUN", "oprators"], "Did you mean operators"),
        (["RUN", "steps", "--order-by", "length"], "no column length"),
        (["RUN", "steps", "--columns", "step,durr_ns"], "Did you mean dur_ns"),
        (["RUN", "steps", "--name", "x"], "cannot be filtered by name"),
        (["RUN", "operators", "--min-time", "soon"], "not a length of time"),
        (["RUN", "operators", "--top", "many"], "not a whole number"),
        (["RUN", "operators", "--json", "--csv"], "cannot be combined with"),
        (["RUN", "steps", "--all-steps"], "has no effect on the table steps"),
        (["RUN", "--csv"], "the summary is not a table"),
        (["RUN", "--top", "3"], "the summary is not a table"),
        (["RUN", "steps", "--widht", "3"], "unknown option or argument"),
        ([], "missing arguments: RUN"),
    ],
)
def test_wrong_input_is_told_and_nothing_is_printed(strobe, words, error):
    code, out, err = strobe("show", *words)
    if "--json" in words:
        err, out = out, ""
    assert code == 2 and out == "" and error in err
