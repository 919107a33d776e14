import json
import os
import platform
import shutil

import pytest

from strobe.errors import NoSuchRun
from strobe.ingest.building import builder as build_module
from strobe.ingest.building.builder import build
from strobe.ingest.building.opening import open_run_dir
from strobe.ingest.building.table_state import BUILT_FILE, is_current
from strobe.ingest.recording import rank_reader
from strobe.model.journal import FACTS_FILE, Mark
from strobe.model.manifest import Manifest, read_manifest, write_manifest
from strobe.model.schema import METRIC_TABLES, RANK_SHIFT, STORED_TABLES
from tests.helpers import text
from tests.ingest.runs import BOOT_NS, START_NS, op, plain_steps, write_raw, write_window

NAMES = [(1, "loader", "my loader"), (2, "counter", "rss_bytes"), (3, "collective", "all_reduce")]


def test_marks_become_steps_phases_waits_counters_and_queues(tmp_path):
    marks = [
        *plain_steps(2),
        (20_000, Mark.COUNTER, 2, 1234),
        (22_000, Mark.GC_PAUSE, 0, 500 * 4 + 2),
        (24_000, Mark.COLLECTIVE_BEGAN, 3, 4096),
        (25_000, Mark.COLLECTIVE_ENDED, 3, 0),
    ]
    write_raw(tmp_path, marks, strings=NAMES)
    run = open_run_dir(tmp_path)
    events = run.sql(
        "SELECT kind, e.name, ts_ns, dur_ns, step, t.name AS track FROM events e"
        " JOIN tracks t ON t.id = track_id WHERE kind <> 'phase' ORDER BY e.id"
    )
    assert text(events) == (
        "kind name ts_ns dur_ns step track\n"
        "step step 1 1000 70000 1 steps\n"
        "data my loader 1000 10000 1 MainThread\n"
        "gc collect generation 2 22000 500 1 MainThread\n"
        "collective all_reduce 24000 1000 1 MainThread\n"
        "step step 2 71000 80000 2 steps\n"
        "data my loader 81000 10000 2 MainThread"
    )
    phases = run.sql(
        "SELECT step, sum(dur_ns)::BIGINT AS ns, count(DISTINCT parent_id) AS parents FROM events"
        " WHERE kind = 'phase' GROUP BY step ORDER BY step"
    )
    assert text(phases) == "step ns parents\n1 70000 1\n2 80000 1"
    assert text(run.table("counters")) == "rank ts_ns name value\n0 20000 rss_bytes 1234.0"
    assert text(run.table("queues")) == (
        "rank ts_ns name length capacity\n0 1000 my loader 2 -\n0 81000 my loader 2 -"
    )
    assert text(run.sql("SELECT operation, bytes FROM collective_args")) == (
        "operation bytes\nall_reduce 4096"
    )
    assert text(run.table("problems")) == "rank source what count"


@pytest.mark.slow
def test_ids_are_unique_over_ranks_and_in_order_of_time(tmp_path):
    for rank in (0, 1):
        write_raw(tmp_path, plain_steps(3), rank=rank)
    run = open_run_dir(tmp_path)
    ids = run.sql("SELECT id, ts_ns FROM events ORDER BY id").fetchall()
    assert len({i for i, _ in ids}) == len(ids)
    of_second = [(i, ts) for i, ts in ids if i >> RANK_SHIFT == 1]
    assert len(of_second) == len(ids) // 2
    assert [ts for _, ts in of_second] == sorted(ts for _, ts in of_second)
    tracks = run.sql("SELECT rank, count(*) AS n FROM tracks GROUP BY rank ORDER BY rank")
    assert text(tracks) == "rank n\n0 2\n1 2"


def test_the_journal_and_a_window_share_the_thread_and_the_clock(tmp_path):
    raw = write_raw(tmp_path, plain_steps(2), strings=NAMES)
    wait = "enumerate(DataLoader)#_Iter.__next__"
    write_window(raw, [op(wait, 2, 10, "user_annotation"), op("aten::mm", 3, 4)])
    run = open_run_dir(tmp_path)
    table = run.sql(
        "SELECT e.name, e.kind, p.name AS parent FROM events e JOIN events p ON p.id = e.parent_id"
        " WHERE e.kind <> 'phase' ORDER BY e.id"
    )
    assert text(table) == f"name kind parent\n{wait} annotation my loader\naten::mm op {wait}"


def test_without_marks_of_its_own_a_window_tells_of_the_waits(tmp_path):
    raw = write_raw(tmp_path)
    write_window(raw, [op("enumerate(DataLoader)#x", 2, 10, "user_annotation")])
    assert text(open_run_dir(tmp_path).sql("SELECT kind FROM events")) == "kind\ndata"


def test_every_table_but_of_metrics_is_written_and_current_until_a_raw_file_changes(tmp_path):
    raw = write_raw(tmp_path, plain_steps(1))
    build(tmp_path)
    tables = tmp_path / "rank_0" / "tables"
    always = set(STORED_TABLES) - set(METRIC_TABLES)
    wanted = {f"{table.name}.parquet" for table in always} | {BUILT_FILE}
    assert {path.name for path in tables.iterdir()} == wanted
    assert is_current(tmp_path)
    before = (tables / BUILT_FILE).stat().st_mtime_ns
    build(tmp_path)
    assert (tables / BUILT_FILE).stat().st_mtime_ns == before
    write_window(raw, [op("aten::mm", 3, 4)])
    assert not is_current(tmp_path)
    assert len(open_run_dir(tmp_path).sql("SELECT * FROM op_args").fetchall()) == 1
    assert is_current(tmp_path)


def test_marks_written_through_a_mapping_make_the_tables_stale(tmp_path):
    raw = write_raw(tmp_path, plain_steps(1))
    build(tmp_path)
    path = raw / "journal-0001.bin"
    times = path.stat()
    data = bytearray(path.read_bytes())
    data[-200] = 1
    path.write_bytes(bytes(data))
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
    assert not is_current(tmp_path)


def test_what_a_killed_builder_left_is_cleared(tmp_path):
    write_raw(tmp_path, plain_steps(1))
    leftover = tmp_path / "rank_0" / ".tables.tmp-999999999"
    leftover.mkdir()
    build(tmp_path)
    assert not leftover.exists()
    assert sorted(p.name for p in (tmp_path / "rank_0").iterdir()) == ["raw", "tables"]


@pytest.mark.slow
def test_one_bad_rank_does_not_spoil_the_others(tmp_path):
    write_raw(tmp_path, plain_steps(2))
    bad = write_raw(tmp_path, rank=1)
    (bad / "window-0001.trace.json").mkdir()  # nothing can be read from a directory
    run = open_run_dir(tmp_path)
    assert text(run.sql("SELECT count(*) AS steps FROM events WHERE kind = 'step'")) == "steps\n2"
    (row,) = run.sql("SELECT rank, what FROM problems").fetchall()
    assert row[0] == 1 and "tables of this rank were not built" in row[1]
    assert not is_current(tmp_path)


def test_a_failure_is_tried_again(tmp_path, monkeypatch):
    write_raw(tmp_path, plain_steps(2))
    with monkeypatch.context() as patch:
        patch.setattr(rank_reader, "_windows", lambda *_: 1 / 0)
        run = open_run_dir(tmp_path)
        assert "ZeroDivisionError" in text(run.sql("SELECT what FROM problems"))
        assert run.sql("SELECT * FROM events").fetchall() == []
    assert open_run_dir(tmp_path).sql("SELECT * FROM problems").fetchall() == []


def test_of_a_rank_that_was_removed_meanwhile_no_tables_are_kept(tmp_path, monkeypatch):
    raw = write_raw(tmp_path, plain_steps(2))
    built = build_module.build_rank

    def removing_it(*given):
        built(*given)
        shutil.rmtree(raw)

    monkeypatch.setattr(build_module, "build_rank", removing_it)
    with pytest.raises(NoSuchRun):
        build(tmp_path)
    assert [path.name for path in tmp_path.rglob("*")] == ["rank_0"]


def test_a_killed_window_and_a_lost_one_are_told(tmp_path):
    facts = [{"type": "window", "number": 2, "state": "exporting"}]
    raw = write_raw(tmp_path, plain_steps(1), facts)
    (raw / "window-0001.trace.json").write_text('{"traceEvents": [{"ph": "X", "name": "a"')
    what = text(open_run_dir(tmp_path).sql("SELECT source, what FROM problems"))
    assert "window 2 its trace is missing: it was last seen exporting" in what
    assert "in the middle of an event" in what and "names of modules are missing" in what


def test_the_pieces_of_a_window_are_one_and_a_lost_window_is_told(tmp_path):
    windows = [
        (1, Mark.WINDOW_BEGAN, 0, 1), (50, Mark.WINDOW_ENDED, 0, 1),
        (60, Mark.WINDOW_BEGAN, 1, 2), (90, Mark.WINDOW_ENDED, 0, 2),
        (200, Mark.WINDOW_BEGAN, 0, 3), (220, Mark.WINDOW_ENDED, 0, 3),
        (300, Mark.WINDOW_BEGAN, 0, 4),
    ]  # fmt: skip
    raw = write_raw(tmp_path, windows)
    for number in (1, 2, 3):
        write_window(raw, [op("aten::mm", 0, 1)], number=number)
    run = open_run_dir(tmp_path)
    spans = run.sql("SELECT name, ts_ns, dur_ns FROM events WHERE kind = 'annotation' ORDER BY 2")
    assert text(spans) == "name ts_ns dur_ns\nstrobe window 1 1 89\nstrobe window 3 200 20"
    assert text(run.sql("SELECT source, what FROM problems WHERE source LIKE 'window%'")) == (
        "source what\nwindow 4 lost: the process ended before its operators were written"
    )


def test_a_rank_that_could_say_nothing_ended_as_the_run_did(tmp_path):
    manifest = Manifest(started_unix_ns=START_NS, recorded_by="strobe run", state="terminated")
    write_manifest(tmp_path, manifest)
    write_raw(tmp_path, plain_steps(1), ended=None)
    facts = tmp_path / "rank_0" / "raw" / FACTS_FILE
    here = facts.read_text().replace('"there"', f'"{platform.node()}"')
    facts.write_text(here.replace('"pid": 77', '"pid": 99999999'))  # no such process
    assert [rank.state for rank in build(tmp_path).ranks] == ["terminated"]


def test_words_left_beside_the_ranks_are_problems(tmp_path):
    write_raw(tmp_path, plain_steps(1))
    words = "17 pid 8: rank 0: the disk refused\n18 pid 9: no room\n"
    (tmp_path / "problems.txt").write_text(words)
    assert text(open_run_dir(tmp_path).sql("SELECT what FROM problems")) == (
        "what\nrank 0: the disk refused\nno room"
    )


def test_ranks_are_described_by_their_facts(tmp_path):
    write_manifest(tmp_path, Manifest(started_unix_ns=START_NS, recorded_by="strobe run"))
    write_raw(tmp_path, plain_steps(1), rank=3, ended="interrupted")
    manifest = build(tmp_path)
    (rank,) = manifest.ranks
    assert (rank.rank, rank.pid, rank.host, rank.state) == (3, 77, "there", "interrupted")
    assert rank.frameworks == {"torch": "2.13.0"} and rank.world_size == 2
    assert manifest.state == "interrupted"
    assert read_manifest(tmp_path) == manifest


def write_process(raw, **facts):
    fact = {"type": "process", "unix_ns": START_NS, "monotonic_ns": BOOT_NS, **facts}
    (raw / FACTS_FILE).write_text(json.dumps(fact) + "\n")


@pytest.mark.parametrize(
    ("process", "state"),
    [
        ({"pid": os.getpid(), "host": platform.node()}, "recording"),
        ({"pid": os.getpid(), "host": platform.node(), "start_ticks": 1}, "killed"),
        ({"pid": 999_999_999, "host": platform.node()}, "killed"),
        ({"pid": os.getpid(), "host": "elsewhere"}, "recording"),
        ({}, "killed"),
    ],
    ids=["alive", "number given to another", "gone", "on another host", "unknown"],
)
def test_a_rank_that_did_not_say_how_it_ended(tmp_path, process, state):
    write_process(write_raw(tmp_path, ended=None), **process)
    assert [rank.state for rank in build(tmp_path).ranks] == [state]
