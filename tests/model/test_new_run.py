"""Where a new run goes."""

from pathlib import Path

import pytest

from strobe.errors import UsageError
from strobe.model.new_run import BASE_DIR, imported_name, new_run_folder


@pytest.fixture(autouse=True)
def _here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("strobe.model.new_run.time.strftime", lambda _: "20260102-030405")


def test_by_default_it_is_new_and_named_after_what_is_recorded():
    wanted = Path(BASE_DIR, "my-train-20260102-030405")
    assert new_run_folder(None, "my train") == wanted
    wanted.mkdir(parents=True)
    assert new_run_folder(None, "my train") == wanted.with_name(f"{wanted.name}-2")


def test_only_a_run_can_be_overwritten_and_only_if_asked(tmp_path):
    (tmp_path / "run").mkdir()
    assert new_run_folder("run", "x") == Path("run")  # an empty folder is free
    (tmp_path / "run" / "notes.txt").write_text("mine")
    with pytest.raises(UsageError, match="is not empty"):
        new_run_folder("run", "x", overwrite=True)
    (tmp_path / "run" / "run.json").write_text("{}")
    with pytest.raises(UsageError, match="already contains a run"):
        new_run_folder("run", "x")
    assert new_run_folder("run", "x", overwrite=True) == Path("run")
    (tmp_path / "file").write_text("mine")
    with pytest.raises(UsageError, match="a file has the same name"):
        new_run_folder("file", "x")


def test_an_import_is_named_after_the_trace():
    assert imported_name(Path("logs/trace.pt.json.gz")) == "trace"
    assert imported_name(Path("/")) == "import"
