"""What of a table is asked for, as SQL; the rest is in test_app.py, over HTTP."""

import json

import pytest

from strobe.errors import UsageError
from strobe.ingest.building.opening import open_run_dir
from strobe.web import tables
from strobe.web.question import Asked
from strobe.web.served_run import ServedRun
from tests.web.served import HOSTILE_OPERATOR, write_run


@pytest.fixture(scope="module")
def ask(tmp_path_factory):
    path = write_run(tmp_path_factory.mktemp("run"))
    opened = ServedRun(open_run_dir(path))

    def answer(table, /, **params):
        asked = Asked(path, "", (table,), {k: str(v) for k, v in params.items()}, lambda: opened)
        told = tables.answer(asked)
        return told if not isinstance(told.body, bytes) else json.loads(told.body)

    yield answer
    opened.close()


def steps(ask, where):
    return [row[0] for row in ask("steps", columns="step", where=where)["rows"]]


def test_conditions(ask):
    assert steps(ask, "step:in:3|5|99") == [3, 5]
    assert steps(ask, "step:ne:1,step:le:3") == [2, 3]
    assert steps(ask, "step:has:19") == [19]
    assert steps(ask, "is_outlier:eq:true") == []
    assert steps(ask, "dur_ns:gt:1.5e3,step:lt:2") == [1]
    assert steps(ask, "step:null:") == [] and len(steps(ask, "step:known")) == 20


def test_a_comma_in_a_value_begins_no_condition(ask):
    found = ask("events", where=f"name:eq:{HOSTILE_OPERATOR}", columns="name")
    assert found["rows"] == [[HOSTILE_OPERATOR]]
    assert ask("events", where="name:eq:a,b,kind:eq:op")["total"] == 0


@pytest.mark.parametrize(
    "where",
    ["step:eq:1); DROP TABLE x; --", "step:eq:1 OR 1=1", "step;--:eq:1", "step:eq:", "step"],
)
def test_conditions_are_never_sql(ask, where):
    with pytest.raises(UsageError):
        ask("steps", where=where)


@pytest.mark.parametrize("text", ["'", "''; DROP TABLE events; --", '"', "\\", "%", "é", "操作"])
def test_text_is_never_sql(ask, text):
    for params in ({"q": text}, {"name": text}, {"where": f"name:has:{text}"}, {"scope": text}):
        assert ask("operators", **params)["ok"]


def test_search_finds_what_is_nearly_so_in_any_column_of_text(ask):
    names = {row[0] for row in ask("operators", q="ATEN mm", columns="name")["rows"]}
    assert "aten::mm" in names and "aten::op3" not in names
    with pytest.raises(UsageError, match="no text column"):
        ask("steps", q="x")


def test_nulls_come_last_either_way(ask):
    for desc in (0, 1):
        rows = ask("operators", order="flops", desc=desc, columns="flops")["rows"]
        known = [row[0] is not None for row in rows]
        assert known == sorted(known, reverse=True)


def test_the_options_of_an_analysis_are_its_own(ask):
    assert ask("operators", type="mm")["total"] >= 1
    assert ask("operators", min_ns=10**15)["total"] == 0
    with pytest.raises(UsageError, match="all_steps"):
        ask("steps", all_steps=1)


def test_a_file_is_made_piece_by_piece(ask, monkeypatch):
    monkeypatch.setattr(tables, "BATCH_ROWS", 3)
    answer = ask("steps", format="csv", columns="step")
    pieces = list(answer.body)
    assert len(pieces) == 1 + 7
    assert b"".join(pieces).decode().split() == ["step", *(str(n) for n in range(1, 21))]
