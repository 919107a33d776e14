from pathlib import Path

import pytest

from strobe.errors import MissingData, NoSuchRun
from strobe.store.run_folder import folder_in, is_run, refuse_removed, while_there


@pytest.fixture
def run(tmp_path: Path) -> Path:
    (tmp_path / "run" / "rank_0" / "raw").mkdir(parents=True)
    return tmp_path / "run"


def test_a_run_has_a_manifest_or_a_rank_that_recorded(run):
    assert is_run(run)  # its ranks speak for it
    assert not is_run(run.parent) and not is_run(run / "nothing")
    (run / "rank_0" / "raw").rmdir()
    assert not is_run(run)
    (run / "run.json").write_text("{}")
    assert is_run(run)


def test_a_folder_is_made_in_one_that_is_there(run):
    assert folder_in(run, "timeline").is_dir()
    assert folder_in(run, "timeline") == run / "timeline"
    with pytest.raises(FileExistsError):
        folder_in(run, "timeline", is_new=True)


def test_a_folder_is_not_made_in_one_that_is_gone(tmp_path):
    with pytest.raises(NoSuchRun) as caught:
        folder_in(tmp_path / "run", "timeline")
    assert caught.value.where == str(tmp_path / "run") and caught.value.hint
    assert not (tmp_path / "run").exists()


def test_what_is_left_of_a_run_without_a_part_of_it_is_refused(run):
    refuse_removed(run, run / "rank_0")
    with pytest.raises(NoSuchRun, match="removed while Strobe was reading it"):
        refuse_removed(run, run / "rank_1")


@pytest.mark.parametrize(
    "error", [FileNotFoundError(2, "gone"), MissingData("nothing"), KeyError()]
)
def test_what_fails_for_want_of_the_run_says_so(run, error):
    with pytest.raises(NoSuchRun) as caught, while_there(run, run.parent / "other"):
        raise error
    assert caught.value.where == str(run.parent / "other")
    assert caught.value.__cause__ is error


def test_what_fails_otherwise_is_left_alone(run):
    for error in (FileNotFoundError(2, "a table"), MissingData("nothing"), KeyError()):
        with pytest.raises(type(error)) as caught, while_there(run):
            raise error
        assert caught.value is error


def test_of_a_folder_that_holds_no_run_what_was_said_of_it_holds(tmp_path):
    with pytest.raises(MissingData), while_there(tmp_path):
        raise MissingData("this directory is empty")
    with pytest.raises(NoSuchRun), while_there(tmp_path):
        raise FileNotFoundError(2, "raw")


def test_a_folder_that_cannot_be_looked_into_is_not_gone(tmp_path):
    (tmp_path / "run").write_text("a file")
    with pytest.raises(PermissionError), while_there(tmp_path / "run"):
        raise PermissionError(13, "denied")
