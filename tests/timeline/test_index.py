import os
import shutil

import numpy as np
import pytest

from strobe.errors import NoSuchRun
from strobe.timeline import index as timeline_index
from strobe.timeline.index import INDEX_FILE, content_of, make_index, open_index
from tests.helpers import make_run

DRAWING = "0/t op:a 100..110\n0/t op:b 200..230\n1/t op:a 150..151"


@pytest.fixture
def run(tmp_path):
    for rank in (0, 1):
        (tmp_path / f"rank_{rank}" / "raw").mkdir(parents=True)
    opened = make_run(tmp_path, DRAWING)
    yield opened
    opened.close()


def test_the_index_is_kept_and_opened_again(run):
    made = make_index(run)
    assert (run.path / INDEX_FILE).exists()
    opened = open_index(run.path)
    assert opened.about == made.about
    assert opened.origin_ns == 100 and opened.about["span_ns"] == 130
    for name, array in made.arrays.items():
        assert np.array_equal(array, opened.arrays[name]), name


def test_an_index_of_other_tables_is_not_opened(run):
    make_index(run)
    before = content_of(run.path)
    path = run.path / "rank_1" / "tables" / "events.parquet"
    os.utime(path, ns=(1, 1))
    assert content_of(run.path) != before
    assert open_index(run.path) is None


def test_where_the_run_cannot_be_written_the_index_goes_to_the_cache(run, tmp_path, monkeypatch):
    cache = tmp_path / "cache"
    cache.mkdir()
    monkeypatch.setattr(timeline_index, "user_cache", lambda: cache)
    (run.path / INDEX_FILE).parent.write_text("a file where the folder should be")

    def refuse(path, *_):
        if path.is_relative_to(run.path / "timeline"):
            raise PermissionError(13, "denied")
        return writes(path, *_)

    writes = timeline_index.array_file.write
    (run.path / "timeline").unlink()
    monkeypatch.setattr(timeline_index.array_file, "write", refuse)
    make_index(run)
    assert not (run.path / INDEX_FILE).exists()
    assert len(list(cache.iterdir())) == 1
    assert open_index(run.path) is not None


def test_no_index_is_kept_of_a_rank_that_was_removed_meanwhile(run):
    def remove(what, share):
        if what == "writing the index":
            shutil.rmtree(run.path / "rank_1")

    with pytest.raises(NoSuchRun):
        make_index(run, remove)
    assert [path.name for path in run.path.iterdir()] == ["rank_0"]


def test_progress_is_told_in_order(run):
    told = []
    make_index(run, lambda what, share: told.append(share))
    assert told == sorted(told) and told[0] >= 0 and told[-1] <= 1 and len(told) >= 4
