import zipfile

import pytest

from strobe.errors import NoSuchRun, UsageError
from strobe.ingest.importing.importer import import_traces
from strobe.web.base_dir import BaseDir
from strobe.web.changes import change
from tests.ingest.importing.test_importer import trace
from tests.removing import removing
from tests.web.served import write_run


def test_deleting_a_run_leaves_what_is_not_of_it(tmp_path):
    run = write_run(tmp_path / "project", steps=3)
    (run / "train.py").write_text("mine")
    (run / "checkpoints").mkdir()
    told = change(BaseDir(tmp_path), "delete", "project", {"confirm": "project"})
    assert told["left"] == ["checkpoints", "train.py"]
    assert sorted(path.name for path in run.iterdir()) == ["checkpoints", "train.py"]


def test_deleting_an_imported_run_deletes_what_was_unpacked_for_it(tmp_path):
    with zipfile.ZipFile(tmp_path / "traces.zip", "w") as archive:
        archive.writestr("trace.json", trace("mm"))
    run = tmp_path / "base" / "run"
    import_traces([tmp_path / "traces.zip"], run)
    assert (run / "unpacked").is_dir()
    assert change(BaseDir(tmp_path / "base"), "delete", "run", {"confirm": "run"})["left"] == []
    assert not run.exists()


def test_deleting_a_run_leaves_folders_that_only_have_the_name_of_ours(tmp_path):
    run = write_run(tmp_path / "run", steps=3)
    for name in ("unpacked", "live"):
        (run / name).mkdir()
        (run / name / "mine").write_text("mine")
    told = change(BaseDir(tmp_path), "delete", "run", {"confirm": "run"})
    assert told["left"] == ["live", "unpacked"]


def test_deleting_a_run_deletes_what_the_recorder_left_beside_its_ranks(tmp_path):
    run = write_run(tmp_path / "run", steps=3)
    (run / "live" / "inbox").mkdir(parents=True)
    for name in ("analysis.log", "nested.txt", "problems.txt"):
        (run / name).write_text("")
    assert change(BaseDir(tmp_path), "delete", "run", {"confirm": "run"})["left"] == []


def test_deleting_a_run_does_not_follow_its_links(tmp_path):
    run = write_run(tmp_path / "base" / "run", steps=3)
    (tmp_path / "base" / "kept").mkdir()
    (tmp_path / "base" / "kept" / "file").write_text("kept")
    (run / "rank_0" / "link").symlink_to(tmp_path / "base" / "kept")
    change(BaseDir(tmp_path / "base"), "delete", "run", {"confirm": "run"})
    assert not run.exists() and (tmp_path / "base" / "kept" / "file").read_text() == "kept"


def test_a_run_that_cannot_be_read_can_be_deleted(tmp_path):
    run = write_run(tmp_path / "run", steps=3)
    (run / "run.json").write_text("{")
    change(BaseDir(tmp_path), "delete", "run", {"confirm": "run"})
    assert list(tmp_path.iterdir()) == []


def test_a_run_stays_beside_its_neighbours_when_renamed(tmp_path):
    write_run(tmp_path / "group" / "run", steps=3)
    told = change(BaseDir(tmp_path), "rename", "group/run", {"name": "new name (2)"})
    assert told["id"] == "group/new name (2)"
    assert (tmp_path / "group" / "new name (2)" / "run.json").exists()
    same = change(BaseDir(tmp_path), "rename", "group/new name (2)", {"name": "new name (2)"})
    assert same["ok"]


@pytest.mark.parametrize(
    ("what", "body", "touch"),
    [
        ("tags", {"tags": ["slow"]}, "open"),
        ("rename", {"name": "new"}, "os.rename"),
        ("delete", {"confirm": "run"}, "os.rename"),
    ],
)
def test_a_run_that_was_just_removed_cannot_be_changed(tmp_path, what, body, touch):
    run = write_run(tmp_path / "run", steps=3)
    base = BaseDir(tmp_path)
    base.listing()  # from now on its files are not read again
    with removing(run, touches=(touch,)), pytest.raises(NoSuchRun):
        change(base, what, "run", body)
    assert [path.name for path in tmp_path.iterdir()] == ["run, removed"]


@pytest.mark.parametrize(
    "tags", [None, "a", [1], [""], ["x" * 100], ["a\nb"], ["t"] * 99], ids=repr
)
def test_what_is_no_tag_is_refused(tmp_path, tags):
    write_run(tmp_path / "run", steps=3)
    with pytest.raises(UsageError):
        change(BaseDir(tmp_path), "tags", "run", {"tags": tags})
    assert not (tmp_path / "run" / "tags.json").exists()
