import io
import json

import pytest
from rich.cells import cell_len

from strobe.analyse.lookup import declaration, table_names
from strobe.errors import UsageError
from strobe.model.schema import Column, Table
from strobe.reading import OpenedRun
from strobe.show.text.paper import Paper
from strobe.show.text.table import pick, rows, write_csv, write_json, write_text
from tests.analyse.drawings import MODEL, MODEL_ARGS
from tests.helpers import make_run

TABLE = Table(
    "things",
    "What things cost.",
    (
        Column("rank", "i64", "Rank."),
        Column("name", "str", "Name."),
        Column("self_ns", "i64", "Time."),
        Column("share", "f64", "Share.", nullable=True),
        Column("is_odd", "bool", "Odd."),
    ),
)
ROWS = [
    (0, 'aten::mm, "quoted"', 1_500_000, 0.62, False),
    (0, "矩阵乘法🎉\x1b[31m", 20, float("nan"), True),
    (0, "x" * 90, 0, None, False),
]


def written(rows=ROWS, table=TABLE, width=80, is_terminal=False, **options):
    out = io.StringIO()
    write_text(table, rows, Paper(out, width, is_terminal), **options)
    return out.getvalue()


def test_plain_text_aligned_and_without_control_characters():
    assert written(width=50, hide=frozenset({"rank"})) == (
        "name                              self  share  odd\n"
        'aten::mm, "quoted"             1.50 ms    62%\n'
        "矩阵乘法🎉�[31m                  20 ns         yes\n"
        "xxxxxxxxxxxxxx…xxxxxxxxxxxxxx     0 ns\n"
    )


def test_csv_is_raw():
    out = io.StringIO()
    write_csv(TABLE, iter([ROWS[:2]]), out)
    assert out.getvalue() == (
        "rank,name,self_ns,share,is_odd\n"
        '0,"aten::mm, ""quoted""",1500000,0.62,false\n'
        "0,矩阵乘法🎉\x1b[31m,20,,true\n"
    )


def test_json_is_raw_and_finite():
    out = io.StringIO()
    write_json(TABLE, iter([ROWS[:1], ROWS[1:2]]), out)
    data = json.loads(out.getvalue(), parse_constant=lambda word: pytest.fail(word))
    assert data["ok"] is True and data["table"] == "things"
    assert data["columns"][2] == {"name": "self_ns", "type": "i64", "doc": "Time."}
    assert data["rows"] == [
        [0, 'aten::mm, "quoted"', 1500000, 0.62, False],
        [0, "矩阵乘法🎉\x1b[31m", 20, None, True],
    ]


def test_no_rows_is_json_and_csv_too():
    out = io.StringIO()
    write_json(TABLE, iter([]), out)
    assert json.loads(out.getvalue())["rows"] == []
    assert written([]) == "no rows: What things cost.\n"


def test_bars_and_colour_only_in_a_terminal(monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert "\x1b[36m██████▎" in written(ROWS[:1], width=100, is_terminal=True)
    assert "\x1b" not in written(ROWS[:1]) and "█" not in written(ROWS[:1])
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b" not in written(ROWS[:1], width=100, is_terminal=True)


def test_what_was_left_out_is_said():
    text = written(width=40, row_count=12)
    assert "3 of 12 rows; --top 0 shows all\n" in text
    assert "no room for:" in text


def test_columns_can_be_picked_in_any_order():
    assert pick(TABLE, ["share", "name"]).column_names == ("share", "name")
    with pytest.raises(UsageError, match="no column shar"):
        pick(TABLE, ["shar"])


@pytest.fixture(scope="module")
def long_names(tmp_path_factory):
    long = MODEL.replace("net.fc", "net." + "encoder.layers.12." * 5 + "层归一化").replace(
        "aten::addmm", "aten::" + "a_very_long_operator_name" * 4
    )
    with OpenedRun(make_run(tmp_path_factory.mktemp("run"), long, MODEL_ARGS)) as opened:
        yield opened


@pytest.mark.parametrize("is_terminal", [False, True])
@pytest.mark.parametrize("width", [40, 80, 160])
@pytest.mark.parametrize("name", table_names())
def test_no_line_is_wider_than_the_paper(long_names, monkeypatch, name, width, is_terminal):
    monkeypatch.setenv("NO_COLOR", "1")
    table = declaration(name)
    batches = rows(long_names.run.connection, long_names.table(name), table)
    text = written([row for batch in batches for row in batch], table, width, is_terminal)
    assert all(cell_len(line) <= width for line in text.splitlines()), text


def test_modules_are_drawn_as_a_tree(tmp_path):
    with OpenedRun(make_run(tmp_path, MODEL, MODEL_ARGS)) as opened:
        table = pick(declaration("modules"), ["scope", "class", "depth", "operators_ns"])
        found = [r for b in rows(opened.run.connection, opened.modules, table) for r in b]
    hidden = frozenset({"depth"})
    assert written(found, table, is_tree=True, hide=hidden) == (
        "scope  class   operators\nnet    Net        440 ns\n  fc   Linear     380 ns\n"
    )


def test_values_of_scalars_have_their_own_digits_and_nan_is_one():
    table = Table("scalars", "S.", (Column("value", "f64", "V."),))
    rows = [(0.000012345,), (float("nan"),), (float("-inf"),), (0.5,)]
    assert written(rows, table).split() == ["value", "1.234e-05", "NaN", "-Inf", "0.5"]


def test_nan_and_infinity_are_words_where_they_are_values():
    table = Table(
        "scalars", "Numbers.",
        (Column("value", "f64", "It."), Column("epoch", "f64", "Its epoch.", nullable=True)),
    )  # fmt: skip
    rows = [(float("nan"), None), (float("inf"), 1.0), (float("-inf"), float("nan")), (0.5, 2.0)]
    out = io.StringIO()
    write_json(table, iter([rows]), out)
    found = json.loads(out.getvalue())["rows"]
    assert found == [["NaN", None], ["Infinity", 1.0], ["-Infinity", None], [0.5, 2.0]]
    out = io.StringIO()
    write_csv(table, iter([rows]), out)
    assert out.getvalue().splitlines()[1:] == ["NaN,", "Infinity,1.0", "-Infinity,", "0.5,2.0"]
