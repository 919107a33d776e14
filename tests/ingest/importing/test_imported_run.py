"""The run of a path: a run itself, or one made of the traces there."""

import os
import zipfile
from pathlib import Path

import pytest

from strobe.errors import UnreadableTrace, UsageError
from strobe.ingest.importing import imported_run, importer
from strobe.ingest.importing.imported_run import run_of
from tests.ingest.importing.test_importer import names_by_rank, trace


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    folder = tmp_path / "cache"
    folder.mkdir()
    monkeypatch.setattr(imported_run, "user_cache", lambda: folder)
    return folder


@pytest.fixture
def imports(monkeypatch) -> list[list[Path]]:
    """The paths of each import."""
    made, original = [], importer.import_traces

    def counted(paths, *rest):
        made.append(paths)
        return original(paths, *rest)

    monkeypatch.setattr(importer, "import_traces", counted)
    return made


def places(folder: Path) -> dict[str, Path]:
    """The same trace as a file, in a folder, and in an archive."""
    (folder / "traces").mkdir()
    (folder / "traces" / "a.json").write_bytes(trace("mm"))
    (folder / "a.json").write_bytes(trace("mm"))
    with zipfile.ZipFile(folder / "a.zip", "w") as archive:
        archive.write(folder / "a.json", "a.json")
    return {name: folder / name for name in ("a.json", "traces", "a.zip")}


def test_a_file_a_folder_and_an_archive_are_imported_once(tmp_path, imports):
    for path in places(tmp_path).values():
        run = run_of(path)
        assert names_by_rank(run) == [(0, "mm")] and run_of(path) == run
    assert imports == [[path] for path in (tmp_path / "a.json", tmp_path / "traces",
                                           tmp_path / "a.zip")]  # fmt: skip


def test_a_run_and_a_path_that_does_not_exist_are_left_alone(tmp_path, imports):
    run = run_of(places(tmp_path)["a.json"])
    (run / "run.json").unlink()
    assert run_of(run) == run  # by its ranks
    assert run_of(tmp_path / "nowhere") == tmp_path / "nowhere"
    assert len(imports) == 1


def test_a_trace_that_changed_is_imported_again(tmp_path, imports):
    path = places(tmp_path)["a.json"]
    first = run_of(path)
    path.write_bytes(trace("add"))
    os.utime(path, ns=(1, 1))
    assert names_by_rank(run_of(path)) == [(0, "add")] and run_of(path) != first
    assert len(imports) == 2


def test_a_folder_of_runs_is_refused(tmp_path):
    importer.import_traces([places(tmp_path)["a.json"]], tmp_path / "runs" / "one")
    with pytest.raises(UnreadableTrace, match="contains a run"):
        run_of(tmp_path / "runs")


def test_a_failed_import_leaves_nothing(tmp_path, cache):
    (tmp_path / "notes.txt").write_text("no trace")
    with pytest.raises((UnreadableTrace, UsageError)):
        run_of(tmp_path / "notes.txt")
    assert list(cache.iterdir()) == []
