import errno

import pytest

from strobe.errors import MissingData, UnreadableTrace
from strobe.ingest.building import builder as build_module
from strobe.ingest.building.opening import open_run_dir
from strobe.model.manifest import MANIFEST_FILE, Manifest, read_manifest, write_manifest
from strobe.store import user_cache
from tests.helpers import text
from tests.ingest.runs import START_NS, plain_steps, write_raw


def refused(path, kind=UnreadableTrace) -> str:
    with pytest.raises(kind) as caught:
        open_run_dir(path)
    assert caught.value.where == str(path) and caught.value.hint
    return caught.value.what


def test_what_is_no_run_says_so(tmp_path):
    assert refused(tmp_path / "nowhere") == "this run does not exist"
    file = tmp_path / "trace.json"
    file.write_text("{}")
    assert refused(file) == "this is a file, not the folder of a run"
    empty = tmp_path / "empty"
    empty.mkdir()
    assert refused(empty) == "this folder is empty"
    assert refused(tmp_path) == "this folder does not contain a run"


def test_a_folder_of_runs_lists_them(tmp_path):
    (tmp_path / "first").mkdir()
    write_manifest(tmp_path / "first", Manifest(started_unix_ns=0, recorded_by="x"))
    with pytest.raises(UnreadableTrace) as caught:
        open_run_dir(tmp_path)
    assert caught.value.what == "this folder is not a run, but contains a run"
    assert f"strobe show {tmp_path / 'first'}" in caught.value.hint


def test_a_run_without_ranks_says_why_nothing_was_recorded(tmp_path):
    manifest = Manifest(started_unix_ns=0, recorded_by="strobe run", state="failed", exit_code=3)
    write_manifest(tmp_path, manifest)
    what = (
        "nothing was recorded: the command ended before its first training step "
        "(state: failed, exit code 3)"
    )
    assert refused(tmp_path, MissingData) == what
    (tmp_path / "problems.txt").write_text("5 pid 7: cannot record: No space left\n")
    assert refused(tmp_path, MissingData) == "nothing was recorded: cannot record: No space left"


def test_a_missing_manifest_is_made_again_from_the_ranks(tmp_path):
    write_raw(tmp_path, plain_steps(2))
    run = open_run_dir(tmp_path)
    assert run.manifest.started_unix_ns == START_NS and run.manifest.state == "finished"
    assert (tmp_path / MANIFEST_FILE).exists()


def test_a_broken_manifest_is_an_error_with_a_hint(tmp_path):
    write_raw(tmp_path, plain_steps(1))
    (tmp_path / MANIFEST_FILE).write_text("{")
    with pytest.raises(UnreadableTrace, match="run.json cannot be read") as caught:
        open_run_dir(tmp_path)
    assert "Delete run.json" in caught.value.hint


def test_a_run_that_cannot_be_written_to_is_built_elsewhere(tmp_path, monkeypatch):
    run_dir, cache = tmp_path / "run", tmp_path / "cache"
    cache.mkdir()
    write_raw(run_dir, plain_steps(2))
    before = sorted(run_dir.rglob("*"))
    replacing = build_module._replacing

    def read_only(rank, raw):
        if rank.is_relative_to(run_dir):
            raise OSError(errno.EROFS, "Read-only file system")
        return replacing(rank, raw)

    monkeypatch.setattr(build_module, "_replacing", read_only)
    monkeypatch.setattr(user_cache.tempfile, "gettempdir", lambda: str(cache))
    for _ in range(2):  # the second time from the cache
        run = open_run_dir(run_dir)
        steps = run.sql("SELECT count(*) AS n FROM events WHERE kind = 'step'")
        assert text(steps) == "n\n2"
    assert run.path == run_dir
    assert sorted(run_dir.rglob("*")) == before


def test_a_current_run_that_cannot_be_written_to_is_not_built_again(tmp_path, monkeypatch):
    run_dir, cache = tmp_path / "run", tmp_path / "cache"
    cache.mkdir()
    write_raw(run_dir, plain_steps(2))
    open_run_dir(run_dir).close()
    manifest = read_manifest(run_dir)
    manifest.host = "a description that is not up to date"
    manifest.ranks = []
    write_manifest(run_dir, manifest)

    def read_only(run, manifest):
        raise OSError(errno.EROFS, "Read-only file system")

    monkeypatch.setattr(build_module, "write_manifest", read_only)
    monkeypatch.setattr(user_cache.tempfile, "gettempdir", lambda: str(cache))
    run = open_run_dir(run_dir)
    assert [rank.rank for rank in run.manifest.ranks] == [0]
    assert run.rank_dirs == [run_dir / "rank_0"] and list(cache.rglob("*.parquet")) == []


def test_other_faults_of_the_disk_are_not_hidden(tmp_path, monkeypatch):
    write_raw(tmp_path, plain_steps(1))
    replacing = build_module._replacing

    def broken(rank, raw):
        if rank.is_relative_to(tmp_path):
            raise OSError(errno.EIO, "Input/output error")
        return replacing(rank, raw)

    monkeypatch.setattr(build_module, "_replacing", broken)
    with pytest.raises(OSError, match="Input/output"):
        open_run_dir(tmp_path)
