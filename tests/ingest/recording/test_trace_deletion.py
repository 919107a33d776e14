"""Traces that were deleted once they were read: the run stays whole, whoever opens it."""

import json
from pathlib import Path

import duckdb
import pytest

from strobe.ingest.building.opening import open_run_dir
from strobe.ingest.building.table_state import is_current
from strobe.ingest.recording import rank_state, trace_deletion
from strobe.model.journal import FACTS_FILE
from tests.ingest.runs import op, plain_steps, write_raw, write_window


@pytest.fixture
def run(tmp_path: Path) -> Path:
    write_raw(tmp_path, plain_steps(2))
    raw = tmp_path / "rank_0" / "raw"
    write_window(raw, [op("aten::mm", 1, 2)])
    facts = {
        "type": "window",
        "number": 1,
        "file": "window-0001.trace.json.gz",
        "state": "complete",
    }
    with open(raw / FACTS_FILE, "a", encoding="utf-8") as file:
        file.write(json.dumps(facts) + "\n")
    return tmp_path


def wish(run: Path, is_wanted: bool) -> Path:
    raw = run / "rank_0" / "raw"
    with open(raw / FACTS_FILE, "a", encoding="utf-8") as file:
        fact = {"type": "options", "options": {"data_simplification": is_wanted}}
        file.write(json.dumps(fact) + "\n")
    return raw


def operators(run: Path) -> int:
    return open_run_dir(run).sql("select count(*) from events where kind = 'op'").fetchall()[0][0]


def test_only_who_asks_loses_traces(run: Path):
    raw = wish(run, False)
    assert operators(run) == 1
    assert list(raw.glob("*.trace.json*")) and not trace_deletion.is_simplified(raw)


def test_tables_outlive_their_traces_and_the_code_that_made_them(
    run: Path, monkeypatch: pytest.MonkeyPatch
):
    raw = wish(run, True)
    assert operators(run) == 1
    assert not list(raw.glob("*.trace.json*")) and trace_deletion.deleted(raw) == {1}
    assert is_current(run)
    monkeypatch.setattr(rank_state, "builder", lambda: 1)
    assert operators(run) == 1
    assert open_run_dir(run).sql("select count(*) from problems").fetchall() == [(0,)]


def test_tables_of_version_4_outlive_their_traces_and_get_families(run: Path):
    raw = wish(run, True)
    query = "select name, family from events join op_args on event_id = id order by id"
    families = open_run_dir(run).sql(query).fetchall()
    assert families and any(family for _, family in families)
    tables = raw.parent / "tables"
    args, old = tables / "op_args.parquet", tables / "old.parquet"
    duckdb.sql(f"copy (select * exclude family from '{args}') to '{old}'")
    old.replace(args)
    for path in (tables / "built.json", run / "run.json"):
        path.write_text(json.dumps({**json.loads(path.read_text()), "schema_version": 4}))
    assert open_run_dir(run).sql(query).fetchall() == families
    assert is_current(run)
    assert "family" in duckdb.sql(f"from '{args}'").columns


def test_lost_tables_are_told(run: Path):
    raw = wish(run, True)
    operators(run)
    for path in (raw.parent / "tables").iterdir():
        path.unlink()
    assert operators(run) == 0
    said = open_run_dir(run).sql("select what from problems").fetchall()
    assert any("data_simplification" in what for (what,) in said)
