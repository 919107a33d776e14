"""The model of the pipeline, against sums by hand. Times in ms."""

import pytest

from strobe.advise.data.pipeline_model import Setting, Work, run

READS = [Work(reading_ns=30)]
COMPUTES = [Work(transform_ns=30)]


def batch_ns(works, workers, training=10, cores=8, training_cores=1, **options):
    setting = Setting(
        workers, training, cores=cores, training_cores=training_cores, **options
    )  # fmt: skip
    return run(works, setting).batch_ns


def test_without_workers_training_does_everything():
    assert batch_ns([Work(30, 5, 3, 99)], 0) == 48  # nothing is handed over
    assert batch_ns([], 0) == 10


@pytest.mark.parametrize(("workers", "wanted"), [(1, 30), (2, 15), (3, 10), (4, 10)])
def test_the_slower_of_workers_and_training_sets_the_pace(workers, wanted):
    assert batch_ns(READS, workers) == pytest.approx(wanted)
    assert batch_ns(COMPUTES, workers) == pytest.approx(wanted)


def test_reading_needs_no_core_and_computing_does():
    # On two cores, 30 ms of work for each batch beside 10 ms of training on one: 40 / 2.
    assert batch_ns(READS, 4, cores=2) == pytest.approx(10)
    assert batch_ns(COMPUTES, 4, cores=2) == pytest.approx(20, rel=0.01)
    # Training that keeps both cores busy: 10 * 2 + 30, shared by two.
    assert batch_ns(COMPUTES, 4, cores=2, training_cores=2) == pytest.approx(25, rel=0.01)


def test_too_few_cores_slow_the_workers_down():
    alone = run(COMPUTES, Setting(2, 0.001, cores=2))
    crowded = run(COMPUTES, Setting(4, 0.001, cores=2))
    assert alone.slowdown == pytest.approx(1, abs=0.01)
    assert crowded.slowdown == pytest.approx(2, rel=0.02)


def test_a_slow_batch_is_hidden_by_what_was_prefetched():
    """Every tenth takes 60 ms, the others 5: 10.5 on average, against 12 of training."""
    works = [Work(reading_ns=60), *[Work(reading_ns=5)] * 9]
    assert batch_ns(works, 2, training=12, prefetch=4) == pytest.approx(12, rel=0.05)
    assert batch_ns(works, 2, training=12, prefetch=1) > 13


def test_taking_a_batch_holds_training_up():
    assert batch_ns(READS, 4, receive_ns=2) == pytest.approx(12)


def test_work_with_a_part_of_a_stage():
    work = Work(1, 2, 4, 8, others_ns=16)
    assert work.all_ns == 31
    assert work.scaled("reading", 0).all_ns == 30
    assert work.scaled("transform", 0.5).all_ns == 22  # half of it, and of what others took
