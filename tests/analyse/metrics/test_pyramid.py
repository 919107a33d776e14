import os
import shutil

import numpy as np
import pytest

from strobe.analyse.metrics import levels, pyramid
from strobe.analyse.metrics.pyramid import FILE, pyramids
from strobe.errors import NoSuchRun
from tests.analyse.metrics.logged import logged_run, write_scalars
from tests.helpers import make_run


def values_of(found, tag, axis="step", attempt=None):
    return found.line(tag, axis, attempt).points.value.tolist()


def test_a_rank_has_every_tag_and_attempt(tmp_path):
    run = logged_run(
        tmp_path,
        {"tag": "loss", "value": [3, 2, 1], "step": [1, 2, 3]},
        {"tag": "lr", "value": [0.1]},
        {"tag": "loss", "value": [1.5, 0.5], "step": [3, 4], "attempt": 2, "ts_ns": [9000, 9001]},
    )
    (found,) = pyramids(run).values()
    assert found.tags == ["loss", "lr"]
    assert found.attempts("loss") == [1, 2]
    assert values_of(found, "loss") == [3, 2, 1.5, 0.5]
    assert values_of(found, "loss", "time") == [3, 2, 1, 1.5, 0.5]
    assert values_of(found, "loss", attempt=1) == [3, 2, 1]
    assert found.facts("loss")["superseded"] == 1
    assert found.points == 6


def test_tags_are_read_in_batches(tmp_path, monkeypatch):
    monkeypatch.setattr(pyramid, "_BATCH_POINTS", 50)
    random = np.random.default_rng(0)
    series = [{"tag": f"tag '{n}'", "value": random.normal(size=n)} for n in (60, 20, 20, 20, 1)]
    series = [{**one, "tag": f"{one['tag']}/{at}"} for at, one in enumerate(series)]
    (found,) = pyramids(logged_run(tmp_path, *series)).values()
    for one in series:
        line = found.line(one["tag"], "step")
        np.testing.assert_array_equal(line.points.value, one["value"])
        for stored, built in zip(line.levels, levels.build(one["value"]), strict=True):
            for column, expected in zip(stored, built, strict=True):
                np.testing.assert_array_equal(column, expected)


def test_values_that_are_not_finite_are_listed_by_kind(tmp_path):
    value = [1, np.nan, np.inf, -np.inf, np.nan, 2]
    (found,) = pyramids(logged_run(tmp_path, {"tag": "loss", "value": value})).values()
    line = found.line("loss", "step")
    assert line.nan_at.tolist() == [1, 4]
    assert line.positive_infinity_at.tolist() == [2]
    assert line.negative_infinity_at.tolist() == [3]


def test_the_file_is_kept_while_the_tables_are_the_same(tmp_path):
    run = logged_run(tmp_path, {"tag": "loss", "value": range(100)})
    pyramids(run)
    path = tmp_path / "rank_0" / FILE
    before = path.stat().st_ino
    assert values_of(pyramids(run)[0], "loss") == list(range(100))
    assert path.stat().st_ino == before
    run = write_scalars(tmp_path, {"tag": "loss", "value": range(50)})
    assert values_of(pyramids(run)[0], "loss") == list(range(50))
    assert path.stat().st_ino != before


@pytest.mark.parametrize("content", [b"", b"something else", None])
def test_a_damaged_file_is_made_again(tmp_path, content):
    run = logged_run(tmp_path, {"tag": "loss", "value": range(100)})
    pyramids(run)
    path = tmp_path / "rank_0" / FILE
    path.write_bytes(path.read_bytes()[:-1] if content is None else content)
    assert values_of(pyramids(run)[0], "loss") == list(range(100))


def test_a_line_that_grows_keeps_its_sums(tmp_path, monkeypatch):
    random = np.random.default_rng(0)
    value = random.normal(size=3000)
    run = logged_run(tmp_path, {"tag": "loss", "value": value[:2000]})
    run.manifest.state = "recording"
    first = pyramids(run)
    reused = []
    build = levels.build

    def counted(values, old=None, same=0):
        reused.append(same)
        return build(values, old, same)

    monkeypatch.setattr(levels, "build", counted)
    run = write_scalars(tmp_path, {"tag": "loss", "value": value})
    run.manifest.state = "recording"
    second = pyramids(run, first)
    assert reused == [2000]
    line = second[0].line("loss", "step")
    np.testing.assert_array_equal(line.points.value, value)
    for stored, built in zip(line.levels, build(value), strict=True):
        for column, expected in zip(stored, built, strict=True):
            np.testing.assert_array_equal(column, expected)


def test_the_file_of_a_live_run_is_written_when_it_has_grown_enough(tmp_path):
    path = tmp_path / "rank_0" / FILE

    def grow(count, known=None):
        run = write_scalars(tmp_path, {"tag": "loss", "value": range(count)})
        run.manifest.state = "recording"
        found = pyramids(run, known)
        assert found[0].points == count
        return found, path.stat().st_ino

    logged_run(tmp_path, {"tag": "loss", "value": range(1)})
    found, first = grow(1000)
    found, second = grow(1010, found)
    assert second == first
    found, third = grow(1200, found)
    assert third != first


def test_where_nothing_can_be_written_it_is_in_memory(tmp_path, monkeypatch):
    run = logged_run(tmp_path, {"tag": "loss", "value": range(100)})

    def refuse(*_args, **_options):
        raise PermissionError(13, "denied")

    monkeypatch.setattr(pyramid.array_file, "writing", refuse)
    assert values_of(pyramids(run)[0], "loss") == list(range(100))
    assert not (tmp_path / "rank_0" / FILE).exists()


def test_a_run_without_scalars_has_no_pyramid(tmp_path):
    assert pyramids(make_run(tmp_path, "0/main op:x 0..10")) == {}
    assert os.listdir(tmp_path / "rank_0") == ["tables"]


def test_a_rank_that_was_removed_does_not_come_back(tmp_path):
    run = logged_run(tmp_path, {"tag": "loss", "value": range(100)})
    run.sql("CREATE TABLE scalars_before AS FROM scalars")
    run.sql("CREATE OR REPLACE VIEW scalars AS FROM scalars_before")
    shutil.rmtree(tmp_path / "rank_0")
    with pytest.raises(NoSuchRun):
        pyramids(run)
    assert list(tmp_path.iterdir()) == []


def test_tags_and_attempts_may_be_interleaved(tmp_path):
    """Two files of a resumed run may be read in turns."""
    parts = [("loss", 2, [30, 40]), ("lr", 1, [0.1]), ("loss", 1, [1]), ("loss", 2, [50]),
             ("lr", 1, [0.2]), ("loss", 1, [2])]  # fmt: skip
    series = [
        {"tag": tag, "value": value, "attempt": attempt, "step": on, "ts_ns": on}
        for at, (tag, attempt, value) in enumerate(parts)
        for on in [range(10 * at, 10 * at + len(value))]
    ]
    (found,) = pyramids(logged_run(tmp_path, *series)).values()
    assert values_of(found, "loss", attempt=1) == [1, 2]
    assert values_of(found, "loss", attempt=2) == [30, 40, 50]
    assert values_of(found, "lr") == [0.1, 0.2]
