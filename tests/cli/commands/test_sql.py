import json

import pytest


def test_a_question_over_analyses(strobe):
    code, out, _ = strobe(
        "sql", "RUN", "select name, self_ns from operators order by self_ns desc limit 1;", "--csv"
    )
    assert (code, out) == (0, "name,self_ns\naten::mm,180\n")


def test_any_type_becomes_json(strobe):
    query = "select 1.5::decimal(4,2) d, [1, 2] l, sum(dur_ns) s, 'nan'::double n from events"
    answer = json.loads(strobe("sql", "RUN", query, "--json")[1])
    assert answer["rows"][0][:2] == [1.5, [1, 2]] and answer["rows"][0][3] == "NaN"
    assert [column["type"] for column in answer["columns"]] == ["f64", "str", "i64", "f64"]


def test_text_has_units_from_names(strobe):
    code, out, _ = strobe("sql", "RUN", "select 1500000 as self_ns, 0.5 as share")
    assert out == "   self  share\n1.50 ms    50%\n"


@pytest.mark.parametrize("query", ["describe steps", "from steps", "explain select 1"])
def test_other_questions(strobe, query):
    assert strobe("sql", "RUN", query)[0] == 0


@pytest.mark.parametrize(
    "query, error",
    [
        ("selec 1", "this is not valid SQL"),
        ("select nope from steps", 'column "nope" not found'),
        ("select * from stepz", "stepz does not exist"),
        ("select 1; select 2", "expected one query, got 2"),
        ("", "expected one query, got 0"),
        ("copy steps to 'x.csv'", "COPY is not allowed"),
        ("attach 'x.db'", "ATTACH is not allowed"),
        ("create table x as select 1", "CREATE is not allowed"),
        ("install httpfs", "is not allowed"),
        ("set threads = 1", "is not allowed"),
        ("select * from read_text('/etc/hostname')", "disabled by configuration"),
        ("select error('boom')", "boom"),
    ],
)
def test_wrong_or_unwelcome_queries(strobe, tmp_path, query, error):
    code, out, err = strobe("sql", "RUN", query)
    assert (code, out) == (2, "") and error in err
    assert [path.name for path in tmp_path.iterdir()] == ["RUN"]
