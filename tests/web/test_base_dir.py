import pytest

from strobe.errors import NoSuchRun, StrobeError
from strobe.web import base_dir
from strobe.web.base_dir import BaseDir
from tests.removing import removing
from tests.web.served import write_run


def test_a_run_is_found_by_its_name_and_tells_it(base):
    folder = BaseDir(base)
    assert folder.find("group/deep") == base / "group" / "deep"
    assert folder.name_of(base / "group" / "deep") == "group/deep"


def test_a_base_directory_behind_a_link_is_the_folder_itself(base, tmp_path):
    (tmp_path / "link").symlink_to(base)
    assert BaseDir(tmp_path / "link").find("plain") == base / "plain"


@pytest.mark.parametrize("name", ["link-to-run", "link-to-folder/outside", "no-run", "", "a/../b"])
def test_what_is_outside_has_no_name(base, name):
    with pytest.raises(NoSuchRun, match="does not exist"):
        BaseDir(base).find(name)


def test_a_link_inside_of_a_run_must_stay_inside(base, tmp_path):
    with pytest.raises(StrobeError, match="outside the base directory"):
        BaseDir(base).find("link-inside")
    write_run(tmp_path / "base" / "run", steps=3)
    (tmp_path / "base" / "kept.bin").write_bytes(b"x")
    (tmp_path / "base" / "run" / "kept.bin").symlink_to(tmp_path / "base" / "kept.bin")
    assert BaseDir(tmp_path / "base").find("run")


def test_runs_are_looked_for_as_deep_as_people_put_them(tmp_path):
    deep = tmp_path.joinpath(*"abcd")
    write_run(deep / "run", steps=3)
    write_run(deep / "too" / "deep", steps=3)
    write_run(tmp_path / ".hidden" / "run", steps=3)
    assert [run.name for run in BaseDir(tmp_path).runs()] == ["run"]


def test_a_run_that_is_removed_while_it_is_looked_at_is_not_listed_as_broken(tmp_path):
    moments, is_done = 0, True
    while is_done:
        moments += 1
        run = write_run(tmp_path / str(moments) / "run", steps=3)
        with removing(run, at=moments) as removal:
            states = [entry["state"] for entry in BaseDir(run.parent).listing()]
        is_done = removal.is_done
        # Once what it is was read, only the next look finds it gone.
        assert states in ([], ["finished"]), removal.touched
    assert moments > 5


def test_a_huge_folder_is_given_up_in_the_end(tmp_path, monkeypatch):
    monkeypatch.setattr(base_dir, "MOST_FOLDERS", 5)
    for number in range(20):
        (tmp_path / f"folder-{number}").mkdir()
    assert list(BaseDir(tmp_path).runs()) == []
