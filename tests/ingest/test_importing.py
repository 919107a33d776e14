"""Traces written elsewhere become runs."""

import gzip
import json

import pytest

from strobe.cli import main
from strobe.ingest import open_run_dir
from strobe.model.manifest import read_manifest
from tests.helpers import text


def trace(*names: str, rank: int | None = None) -> bytes:
    events = [
        {"ph": "X", "cat": "cpu_op", "name": name, "pid": 7, "tid": 7, "ts": 1e15 + at, "dur": 5}
        for at, name in enumerate(names)
    ]
    header = {} if rank is None else {"distributedInfo": {"rank": rank, "world_size": 9}}
    return json.dumps({"schemaVersion": 1, **header, "traceEvents": events}).encode()


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_a_file_becomes_a_run(tmp_path, pack, capsys):
    file = tmp_path / "any.name"
    file.write_bytes(pack(trace("aten::mm", "aten::add")))
    assert main(["import", str(file), "-o", str(tmp_path / "run")]) == 0
    assert "aten::mm" not in capsys.readouterr().err
    run = open_run_dir(tmp_path / "run")
    names = text(run.sql("SELECT name FROM events WHERE kind = 'op' ORDER BY id"))
    assert names.split() == ["name", "aten::mm", "aten::add"]
    assert read_manifest(tmp_path / "run").recorded_by == "strobe import"


def test_ranks_are_those_of_the_content(tmp_path):
    folder = tmp_path / "traces"
    folder.mkdir()
    for rank in (5, 2):
        (folder / f"{rank}.json").write_bytes(trace(f"op_{rank}", rank=rank))
    (folder / "README").write_text("about these traces")
    assert main(["import", str(folder), "-o", str(tmp_path / "run"), "-q"]) == 0
    run = open_run_dir(tmp_path / "run")
    found = run.sql(
        "SELECT t.rank, e.name FROM events e JOIN tracks t ON t.id = e.track_id"
        " WHERE kind = 'op' ORDER BY 1"
    )
    assert found.fetchall() == [(2, "op_2"), (5, "op_5")]


@pytest.mark.parametrize(
    ("content", "what"),
    [(b"", "this file is empty"), (b"hello", "this file is no trace that Strobe knows")],
)
def test_what_is_no_trace_is_refused_and_leaves_nothing(tmp_path, content, what, capsys):
    file = tmp_path / "file"
    file.write_bytes(content)
    assert main(["import", str(file), "-o", str(tmp_path / "run")]) == 3
    assert what in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_a_missing_file_and_a_run_are_refused(tmp_path, capsys):
    assert main(["import", str(tmp_path / "nothing")]) == 2
    assert "there is no such file or folder" in capsys.readouterr().err
    (tmp_path / "run.json").write_text("{}")
    assert main(["import", str(tmp_path)]) == 2
    assert "this is a run already" in capsys.readouterr().err
