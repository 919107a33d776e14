"""Traces written elsewhere become runs."""

import gzip
import json
import os
import socket

import pytest

from strobe.cli import main
from strobe.errors import UnreadableTrace
from strobe.ingest.building import table_state
from strobe.ingest.building.opening import open_run_dir
from strobe.ingest.formats import compressed
from strobe.ingest.importing import importer
from strobe.model.manifest import read_manifest
from tests.helpers import text

START_US = 10**15  # of these traces, since 1970


def trace(*names: str, rank: int | None = None, start_us: float = START_US) -> bytes:
    events = [
        {
            "ph": "X",
            "cat": "cpu_op",
            "name": name,
            "pid": 7,
            "tid": 7,
            "ts": start_us + at,
            "dur": 5,
        }
        for at, name in enumerate(names)
    ]
    header = {} if rank is None else {"distributedInfo": {"rank": rank, "world_size": 9}}
    return json.dumps({"schemaVersion": 1, **header, "traceEvents": events}).encode()


def undated(*names: str, start_us: float = 0) -> bytes:
    """A plain Chrome trace that does not count from 1970."""
    return json.dumps(
        [
            {"ph": "X", "name": name, "pid": 7, "tid": 7, "ts": start_us + at, "dur": 5}
            for at, name in enumerate(names)
        ]
    ).encode()


def imported(tmp_path, files: dict[str, bytes], *options: str):
    """A folder of files, imported; the run's folder."""
    for name, content in files.items():
        path = tmp_path / "traces" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    run = tmp_path / "run"
    assert main(["import", str(tmp_path / "traces"), "-o", str(run), "-q", *options]) == 0
    return run


def names_by_rank(run, kinds: str = "('op', 'annotation')") -> list[tuple[int, str]]:
    return (
        open_run_dir(run)
        .sql(
            "SELECT t.rank, e.name FROM events e JOIN tracks t ON t.id = e.track_id"
            f" WHERE kind IN {kinds} ORDER BY 1, e.id"
        )
        .fetchall()
    )


def problems(run) -> dict[tuple[str, str], int]:
    found = open_run_dir(run).sql("SELECT source, what, count FROM problems").fetchall()
    # What the reader has to say of a trace without steps is not ours to test.
    return {(source, what): count for source, what, count in found if "step" not in what}


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_a_file_becomes_a_run(tmp_path, pack, capsys):
    file = tmp_path / "any.name"
    file.write_bytes(pack(trace("aten::mm", "aten::add")))
    assert main(["import", str(file), "-o", str(tmp_path / "run")]) == 0
    assert capsys.readouterr().err.startswith("imported 2 events from 1 file (0.0 MB) in ")
    run = open_run_dir(tmp_path / "run")
    names = text(run.sql("SELECT name FROM events WHERE kind = 'op' ORDER BY id"))
    assert names.split() == ["name", "aten::mm", "aten::add"]
    assert read_manifest(tmp_path / "run").recorded_by == "strobe import"


@pytest.mark.slow
def test_a_run_that_was_imported_is_current(tmp_path):
    run = imported(tmp_path, {"a.json": trace("a", rank=0), "b.json": trace("b", rank=1)})
    assert table_state.is_current(run)
    assert read_manifest(run).ranks[1].world_size == 9
    assert not list(run.glob("rank_*/clock.json"))


@pytest.mark.parametrize(
    ("content", "what"),
    [(b"", "this file is empty"), (b"hello", "the format of this file is not known")],
)
def test_what_is_no_trace_is_refused_and_leaves_nothing(tmp_path, content, what, capsys):
    file = tmp_path / "file"
    file.write_bytes(content)
    assert main(["import", str(file), "-o", str(tmp_path / "deep" / "run")]) == 3
    assert what in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_a_missing_file_and_a_run_are_refused(tmp_path, capsys):
    assert main(["import", str(tmp_path / "nothing")]) == 2
    assert "this file or folder does not exist" in capsys.readouterr().err
    (tmp_path / "run.json").write_text("{}")
    assert main(["import", str(tmp_path)]) == 2
    assert "this is already a run" in capsys.readouterr().err


def test_pipes_devices_and_sockets_are_refused(tmp_path, capsys):
    os.mkfifo(tmp_path / "pipe")
    with socket.socket(socket.AF_UNIX) as bound:
        bound.bind(str(tmp_path / "socket"))
        for path, kind in ((tmp_path / "pipe", "a pipe"), ("/dev/null", "a device"),
                           (tmp_path / "socket", "a socket")):  # fmt: skip
            assert main(["import", str(path), "-o", str(tmp_path / "run")]) == 2
            assert f"this is {kind}" in capsys.readouterr().err
        (tmp_path / "traces").mkdir()
        os.mkfifo(tmp_path / "traces" / "pipe")
        run = imported(tmp_path, {"a.json": trace("a")})  # beside it, it is passed over
    assert names_by_rank(run) == [(0, "a")]


def test_strangers_are_counted_a_few_by_name(tmp_path):
    files = {f"{n}.txt": b"text" for n in range(8)}
    run = imported(tmp_path, {**files, "empty.json": b"", "t.json": trace("a"), ".hid": b"x"})
    found = problems(run)
    assert len(found) == 6
    assert found["0.txt", "its format is not known, and it was left out"] == 1
    assert found["import", "further files are no traces, or cannot be read"] == 4


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read anything")
def test_a_file_that_may_not_be_read_is_told(tmp_path, capsys):
    (tmp_path / "traces").mkdir()
    secret = tmp_path / "traces" / "secret.json"
    secret.write_bytes(trace("s"))
    secret.chmod(0)
    assert main(["import", str(secret), "-o", str(tmp_path / "no")]) == 3
    assert "Permission denied" in capsys.readouterr().err
    run = imported(tmp_path, {"t.json": trace("a")})
    assert ("secret.json", "this file cannot be read: Permission denied") in problems(run)


def test_links_are_not_followed_in_folders(tmp_path):
    (tmp_path / "out.json").write_bytes(trace("out"))
    (tmp_path / "traces").mkdir()
    (tmp_path / "traces" / "link.json").symlink_to(tmp_path / "out.json")
    (tmp_path / "traces" / "circle").symlink_to(tmp_path / "traces")
    run = imported(tmp_path, {"t.json": trace("a")})
    assert names_by_rank(run) == [(0, "a")]
    assert problems(run) == {("traces", "symbolic links in a folder are not followed"): 2}
    link = tmp_path / "traces" / "link.json"
    assert main(["import", str(link), "-o", str(tmp_path / "named"), "-q"]) == 0
    assert names_by_rank(tmp_path / "named") == [(0, "out")]


def test_a_folder_of_links_alone_is_told_as_such(tmp_path, capsys):
    (tmp_path / "out.json").write_bytes(trace("out"))
    links = tmp_path / "links"
    links.mkdir()
    (links / "link.json").symlink_to(tmp_path / "out.json")
    assert main(["import", str(links), "-o", str(tmp_path / "run"), "-q"]) != 0
    said = capsys.readouterr().err
    assert "Links are not followed (1)" in said
    assert f"strobe import {links}/*" in said


def test_a_run_inside_the_imported_folder_is_not_read_again(tmp_path):
    (tmp_path / "a.json").write_bytes(trace("a"))
    for name in ("run", "again"):
        assert main(["import", str(tmp_path), "-o", str(tmp_path / name), "-q"]) == 0
        assert names_by_rank(tmp_path / name) == [(0, "a")]
        assert problems(tmp_path / name) == {}


def test_overwrite_replaces_a_run_and_nothing_else(tmp_path, capsys):
    files = {"a.json": trace("a")}
    run = imported(tmp_path, files)
    assert main(["import", str(tmp_path / "traces"), "-o", str(run), "-q"]) == 2
    assert "already contains a run" in capsys.readouterr().err
    (tmp_path / "traces" / "a.json").write_bytes(b"broken")
    overwrite = ["import", str(tmp_path / "traces"), "-o", str(run), "-q", "--overwrite"]
    assert main(overwrite) == 3
    assert names_by_rank(run) == [(0, "a")]  # an import that fails takes nothing away
    (tmp_path / "traces" / "a.json").write_bytes(trace("b"))
    assert main(overwrite) == 0
    assert names_by_rank(run) == [(0, "b")]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["run", "traces"]
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("no run")
    assert main([*overwrite[:3], str(tmp_path / "mine"), "--overwrite"]) == 2


def test_what_a_killed_import_left_is_cleared_away(tmp_path):
    left = tmp_path / ".run.tmp-4194304"  # no process has so high a number
    (left / "rank_0").mkdir(parents=True)
    imported(tmp_path, {"a.json": trace("a")})
    assert sorted(path.name for path in tmp_path.iterdir()) == ["run", "traces"]


@pytest.mark.slow
def test_a_file_that_vanishes_while_others_are_read(tmp_path, monkeypatch):
    def vanish(found):
        for seen in found.traces[:1]:
            seen.found.paths[0].unlink()
        return assigned(found)

    assigned = importer.ranks.assigned
    monkeypatch.setattr(importer.ranks, "assigned", vanish)
    run = imported(tmp_path, {"rank0.json": trace("a"), "rank1.json": trace("b")})
    assert names_by_rank(run) == [(1, "b")]
    assert ("rank0.json", "this file cannot be read: No such file or directory") in problems(run)
    (tmp_path / "one.json").write_bytes(trace("a"))
    with pytest.raises(UnreadableTrace, match="No such file"):
        importer.import_traces([tmp_path / "one.json"], tmp_path / "none")


def test_a_file_that_grows_is_read_to_where_it_was(tmp_path, monkeypatch):
    file = tmp_path / "grows.json"
    file.write_bytes(b"[" + b" " * 600_000 + b"]")
    said, read = [], 0
    for block in compressed.blocks(file, said.append):
        read += len(block)
        with file.open("ab") as more:
            more.write(b"x" * 300_000)
    assert read == 600_002
    assert said == [
        "the file grew by 900,000 bytes while it was read: import it again when it is whole"
    ]


def test_a_file_named_twice_or_with_its_packed_copy_is_one(tmp_path):
    files = {"a.json": trace("a"), "a.json.gz": gzip.compress(trace("a"))}
    run = imported(tmp_path, files)
    assert names_by_rank(run) == [(0, "a")]
    assert "compressed copy" in str(problems(run))
    paths = [str(tmp_path / "traces"), str(tmp_path / "traces" / "a.json")]
    assert main(["import", *paths, "-o", str(tmp_path / "twice"), "-q"]) == 0
    assert names_by_rank(tmp_path / "twice") == [(0, "a")]
