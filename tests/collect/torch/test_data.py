"""Marks of data loaders, in this very process."""

import gc
import inspect
import itertools
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

torch = pytest.importorskip("torch")

from torch.utils.data import DataLoader, _utils, dataloader  # noqa: E402

import strobe  # noqa: E402
from strobe.collect.torch import batch_timing  # noqa: E402
from strobe.model.journal import (  # noqa: E402
    QUEUE_CAPACITY_SHIFT,
    SHORT_BATCH_FIRST_BIT,
    Figure,
    Mark,
)


@pytest.fixture
def hooks(tmp_path: Path):
    profiler = strobe.Profiler(tmp_path / "run", light=True)
    profiler.start()
    yield profiler._recorder.hooks
    profiler.stop()
    profiler._recorder.close("finished")


@pytest.fixture
def marks(hooks):
    seen: list[tuple[Mark, int, int, int]] = []
    hooks.mark = lambda code, ref=0, value=0, ts_ns=0: seen.append((Mark(code), ref, value, ts_ns))
    return seen


class Sleepy(torch.utils.data.Dataset):
    def __len__(self):
        return 2

    def __getitem__(self, index):
        time.sleep(0.003)
        return torch.zeros(2)


def test_a_short_batch_made_here_is_told_by_the_mark_that_it_came(marks, monkeypatch):
    """Clocks that tick at every look: a busy machine must not make it a long one."""
    ticks = itertools.count(1_000_000, 1_000)
    for clock in ("_monotonic_ns", "_thread_time_ns"):
        monkeypatch.setattr(batch_timing, clock, lambda: next(ticks))
    list(DataLoader(torch.zeros(2, 2), batch_size=2))
    assert Mark.BATCH not in {code for code, *_ in marks}
    came = [value for code, _, value, _ in marks if code == Mark.DATA_CAME]
    assert came[0] & 3 == 1 and came[0] >> SHORT_BATCH_FIRST_BIT > 0 and came[1:] == [0]


def test_a_long_batch_made_here_is_some_marks_of_one_moment(marks):
    list(DataLoader(Sleepy(), batch_size=2))
    made = [mark for mark in marks if mark[0] == Mark.BATCH]
    assert len({ts_ns for *_, ts_ns in made}) == 1
    assert {ref >> 8 for _, ref, _, _ in made} == {1}
    figures = {Figure(ref & 0xFF): value for _, ref, value, _ in made}
    known = {Figure.FETCH_NS, Figure.FETCH_CPU_NS, Figure.COLLATE_NS}
    assert known <= figures.keys() <= known | {Figure.FETCH_QUEUED_NS}
    assert figures[Figure.FETCH_NS] >= 6_000_000 > figures[Figure.FETCH_CPU_NS]
    assert [value for code, _, value, _ in marks if code == Mark.DATA_CAME] == [1, 0]


def test_loaders_made_alike_by_one_line_are_one(hooks):
    def loader(rows):
        return DataLoader(torch.zeros(rows, 2))

    for rows in (2, 2, 3):
        list(loader(rows))
    list(DataLoader(torch.zeros(2, 2)))
    assert [hooks.data._number(loader(rows))[0] for rows in (2, 3)] == [1, 2]
    assert len(hooks.data._by_settings) == 3


def test_no_loader_is_kept_alive(hooks):
    list(DataLoader(torch.zeros(2, 2)))
    gc.collect()
    assert hooks.data._lines == hooks.data._numbers == {}
    assert hooks.loaders == {} == hooks.data.timings


def test_the_queue_that_training_takes_from_counts_what_came_out_of_turn(hooks, marks):
    """With pinned memory the loop takes from a queue behind that of the workers."""
    string = hooks.journal.string
    queue = lambda name, length, capacity: SimpleNamespace(  # noqa: E731
        ref=string("queue", name), queue=SimpleNamespace(qsize=lambda: length), capacity=capacity
    )
    known = SimpleNamespace(
        ready=queue("ready", 3, 8), pinned=queue("pinned", 1, 8), orders=(queue("orders", 2, 2),)
    )
    iterator = SimpleNamespace(_task_info={0: (0,), 1: (1, "batch")}, _tasks_outstanding=1)
    hooks.data._mark_queues(known, iterator)
    low = (1 << QUEUE_CAPACITY_SHIFT) - 1
    lengths = {ref: (value & low, value >> QUEUE_CAPACITY_SHIFT) for _, ref, value, _ in marks}
    assert lengths == {
        string("queue", "pinned"): (2, 8), string("queue", "ready"): (3, 8),
        string("queue", "orders"): (2, 2),
    }  # fmt: skip


def test_of_many_workers_some_are_asked_in_turn(hooks, marks):
    asked = []

    def queue(number):
        return SimpleNamespace(
            ref=1, capacity=2, queue=SimpleNamespace(qsize=lambda: asked.append(number) or 0)
        )

    known = SimpleNamespace(ready=queue(-1), pinned=None, orders=tuple(map(queue, range(40))))
    for _ in range(5):
        hooks.data._mark_queues(known, SimpleNamespace())
    assert set(asked) == {-1, *range(40)}
    assert len(asked) == 5 * (1 + 16)


def test_signatures_and_attributes_are_as_before_and_come_back(tmp_path):
    before = inspect.signature(DataLoader.__init__)
    originals = [
        DataLoader.__init__, DataLoader.__iter__, dataloader._BaseDataLoaderIter.__next__,
        _utils.worker._worker_loop,
    ]  # fmt: skip
    profiler = strobe.Profiler(tmp_path / "run", light=True)
    profiler.start()
    assert DataLoader.__init__ is not originals[0]
    assert inspect.signature(DataLoader.__init__) == before
    iterator = iter(DataLoader(torch.zeros(2, 2)))
    assert iterator._dataset_fetcher.collate_fn is iterator._collate_fn
    profiler.stop()
    profiler._recorder.close("finished")
    assert originals == [
        DataLoader.__init__, DataLoader.__iter__, dataloader._BaseDataLoaderIter.__next__,
        _utils.worker._worker_loop,
    ]  # fmt: skip
    assert iterator._dataset_fetcher.collate_fn is iterator._collate_fn


def test_a_loader_that_is_made_wrongly_raises_what_torch_raises(hooks):
    with pytest.raises(ValueError, match="num_workers"):
        DataLoader(torch.zeros(2, 2), num_workers=-1)
    with pytest.raises(AttributeError, match="collate_fn"):
        _ = _utils.fetch._MapDatasetFetcher.__new__(_utils.fetch._MapDatasetFetcher).collate_fn
