"""What a folder contains, and where the search of it ends."""

import pytest

from strobe.cli import main
from strobe.ingest.importing import file_search
from tests.ingest.importing.test_importer import imported, names_by_rank, trace
from tests.ingest.importing.test_jobs import refused


def test_a_folder_of_runs_lists_them_at_any_depth(tmp_path, capsys):
    (tmp_path / "a.json").write_bytes(trace("a"))
    runs = [tmp_path / "logs" / "deep" / name for name in ("one", "two")]
    for run in runs:
        assert main(["import", str(tmp_path / "a.json"), "-o", str(run), "-q"]) == 0
    for command in ("show", "import"):
        assert main([command, str(tmp_path / "logs")]) == 3
        said = capsys.readouterr().err
        assert "this folder is not a run, but contains 2 runs" in said
        assert all(f"strobe show {run}  finished, " in said for run in runs)


def test_the_search_has_an_end(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(file_search, "MOST_FILES", 3)
    files = {f"{n}.txt": b"text" for n in range(4)}
    said = refused(tmp_path, files, capsys, "show")
    assert "this folder contains more than 3 files" in said and "--no-limit" in said
    (tmp_path / "traces" / "t.json").write_bytes(trace("a"))
    words = ["import", str(tmp_path / "traces"), "-o", str(tmp_path / "run"), "-q", "--no-limit"]
    assert main(words) == 0
    assert names_by_rank(tmp_path / "run") == [(0, "a")]


def test_a_search_that_takes_long_says_what_it_has_found(tmp_path, monkeypatch, capsys):
    def stops(self, files: int) -> str:
        return "the search of this folder stopped after 20 s" if self.files > 1 else ""

    monkeypatch.setattr(file_search.Search, "stops", stops)
    files = {"a.json": trace("a"), "b.txt": b"text", "c.json": trace("c")}
    said = refused(tmp_path, files, capsys)
    assert "stopped after 20 s" in said
    assert f"strobe show {tmp_path}/traces" in said and "c.json" not in said


@pytest.mark.slow
def test_what_is_imported_from_a_folder_is_said(tmp_path, capsys):
    folder = tmp_path / "traces"
    folder.mkdir()
    for rank in (0, 1):
        (folder / f"rank{rank}.json").write_bytes(trace("a", rank=rank))
    assert main(["show", str(folder), "tables"]) == 0
    assert main(["show", str(folder), "steps"]) == 0
    assert f"importing 2 traces (torch.profiler) of 2 ranks in {folder}" in capsys.readouterr().err


def test_hidden_folders_are_not_searched(tmp_path):
    raw = tmp_path / "traces" / ".cache" / "host_1_20261115175241133_ascend_pt" / "PROF_1_2_3"
    raw.mkdir(parents=True)
    (raw / "data.slice_0").write_bytes(b"\0\1\2")
    assert names_by_rank(imported(tmp_path, {"t.json": trace("a")})) == [(0, "a")]
