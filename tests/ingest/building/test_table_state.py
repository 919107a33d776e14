"""Where the tables of a run are, and whether they are to be built."""

import json
import shutil

import pytest

from strobe.ingest.building import table_state
from strobe.ingest.building.builder import build
from strobe.ingest.building.opening import open_run_dir
from strobe.ingest.building.table_state import TableState, find_tables, tables_home
from strobe.ingest.importing.importer import import_traces
from strobe.ingest.recording import rank_state
from tests.ingest.importing.test_importer import trace
from tests.ingest.runs import op, plain_steps, write_raw, write_window

pytestmark = pytest.mark.slow


@pytest.fixture
def run(tmp_path, monkeypatch):
    cache = tmp_path / "cache"
    cache.mkdir()
    monkeypatch.setattr(table_state, "user_cache", lambda: cache)
    for rank in range(2):
        write_raw(tmp_path / "run", plain_steps(2), rank=rank)
    return tmp_path / "run"


def refuse_writes(monkeypatch) -> None:
    monkeypatch.setattr(table_state, "_is_writable", lambda run: False)


def test_a_run_is_stale_until_it_is_built_and_again_when_a_rank_grows(run):
    assert (find_tables(run).state, find_tables(run).stale) == (TableState.STALE, (0, 1))
    build(run)
    assert (find_tables(run).state, find_tables(run).stale) == (TableState.CURRENT, ())
    write_window(run / "rank_1" / "raw", [op("aten::mm", 3, 4)])
    assert (find_tables(run).state, find_tables(run).stale) == (TableState.STALE, (1,))


def test_a_run_that_cannot_be_written_has_its_tables_in_the_cache(run, tmp_path, monkeypatch):
    refuse_writes(monkeypatch)
    found = find_tables(run)
    assert found.state is TableState.UNWRITABLE and found.home.parent == tmp_path / "cache"
    assert tables_home(run) == run  # nothing is in the cache yet
    open_run_dir(run).close()
    assert not (run / "rank_0" / "tables").exists()
    assert find_tables(run).state is TableState.CURRENT
    assert tables_home(run) == found.home


def test_tables_in_the_cache_are_used_until_the_run_grows(run, monkeypatch):
    with monkeypatch.context() as patch:
        refuse_writes(patch)
        open_run_dir(run).close()
    assert find_tables(run).state is TableState.CURRENT and find_tables(run).home != run
    write_window(run / "rank_0" / "raw", [op("aten::mm", 3, 4)])
    assert find_tables(run).state is TableState.STALE and find_tables(run).home == run


def test_a_full_disk_counts_as_unwritable(run, monkeypatch):
    usage = shutil.disk_usage(run)._replace(free=1)
    monkeypatch.setattr(table_state.shutil, "disk_usage", lambda path: usage)
    assert find_tables(run).state is TableState.UNWRITABLE
    build(run)
    assert find_tables(run).state is TableState.CURRENT and find_tables(run).home != run


def test_tables_of_traces_that_are_gone_are_orphans_to_another_version(tmp_path, monkeypatch):
    (tmp_path / "trace.json").write_bytes(trace("mm"))
    import_traces([tmp_path / "trace.json"], tmp_path / "run")
    (tmp_path / "trace.json").unlink()
    monkeypatch.setattr(rank_state, "builder", lambda: 1)
    found = find_tables(tmp_path / "run")
    assert found.state is TableState.ORPHANED and found.are_usable and found.stale == ()
    built = tmp_path / "run" / "rank_0" / "tables" / "built.json"
    built.write_text(json.dumps({**json.loads(built.read_text()), "failed": True}))
    assert find_tables(tmp_path / "run").state is TableState.STALE
