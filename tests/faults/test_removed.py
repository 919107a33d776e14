"""A run that is removed while it is read stays removed, at whatever moment that happens."""

import contextlib
from collections.abc import Callable
from pathlib import Path

import pytest

from strobe.errors import NoSuchRun, StrobeError
from strobe.ingest.building.builder import build_apart
from strobe.ingest.building.opening import open_run_dir
from strobe.ingest.recording import early_windows
from strobe.store.run_folder import is_run
from strobe.timeline.index import make_index
from tests.removing import moved_away, removing, what_was_recorded
from tests.web.served import write_run

Doing = Callable[[], object]


def opening(run: Path) -> Doing:
    return lambda: open_run_dir(run).close()


def storing(run: Path) -> Doing:
    """As `strobe run` does when its summary is on the screen."""
    return open_run_dir(run, store_later=True).store


def indexing(run: Path) -> Doing:
    opened = open_run_dir(run)
    return lambda: make_index(opened)


def reading_ahead(run: Path) -> Doing:
    (window,) = run.glob(early_windows.WINDOWS_GLOB)
    return lambda: early_windows.save(window)


@pytest.mark.parametrize("remove", [moved_away, what_was_recorded])
@pytest.mark.parametrize("begin", [opening, storing, indexing, reading_ahead])
def test_at_any_moment(tmp_path: Path, begin, remove):
    moments = 0
    while True:
        moments += 1
        run = write_run(tmp_path / str(moments) / "run", steps=2)
        do = begin(run)
        quietly = contextlib.suppress(StrobeError, OSError)
        with removing(run, remove, at=moments) as removal, quietly:
            do()
        if not removal.is_done:
            break
        assert not is_run(run), removal.touched
        assert remove is what_was_recorded or not run.exists(), removal.touched
    assert moments > 5


def test_whoever_opens_it_is_told(tmp_path: Path):
    moments = 0
    while True:
        moments += 1
        run = write_run(tmp_path / str(moments) / "run", steps=2)
        with removing(run, at=moments) as removal, contextlib.suppress(NoSuchRun):
            open_run_dir(run).close()
            assert not removal.is_done, removal.touched
        if not removal.is_done:
            break
    assert moments > 30


def test_the_process_that_builds_a_rank_apart_does_not_bring_it_back(tmp_path: Path):
    with pytest.raises(NoSuchRun):
        build_apart(tmp_path / "run", 0, 0, tmp_path / "run")
    assert list(tmp_path.iterdir()) == []
