import pytest

from strobe.advise.data.loader import LEAST_RECEIVING_NS, loaders
from tests.advise.data_runs import MS, trained

# Of 30 steps 27 are judged: the first three are warm-up.
JUDGED = 27


def only(training):
    (loader,) = loaders(training)
    return loader


def test_a_loader_is_its_settings_its_waits_and_its_batches(tmp_path):
    made = {"fetch": 8, "cpu": 3, "queued": 0, "collate": 2}
    loader = only(trained(tmp_path, waits=10, trains=10, made=made, workers=0, cores=4))
    assert (str(loader.line), loader.workers, loader.cores) == ("train.py:31", 0, 4)
    assert loader.batches == JUDGED
    assert loader.waited_ns == loader.lost_ns == JUDGED * 10 * MS
    assert loader.setting().training_ns == 10 * MS
    work = loader.works[0]
    assert (work.reading_ns, work.transform_ns, work.collate_ns) == (5 * MS, 3 * MS, 2 * MS)


def test_waits_are_lost_as_they_were_measured_whoever_had_the_cores(tmp_path):
    made = {"fetch": 8, "cpu": 3, "queued": 5, "collate": 2}
    loader = only(trained(tmp_path, waits=10, trains=10, made=made, workers=0))
    assert loader.lost_ns == loader.waited_ns == JUDGED * 10 * MS
    assert loader.works[0].others_ns == 0  # the model knows nothing of it


def test_of_a_wait_for_a_batch_that_lay_ready_only_taking_it_counts(tmp_path):
    made = {"fetch": 8, "cpu": 3, "send": 0.1}
    loader = only(
        trained(tmp_path, waits=10, trains=20, made=made, workers=2, early=1, on_core=3)
    )  # fmt: skip
    assert loader.ready.sum() == JUDGED
    assert loader.receiving_ns == loader.lost_ns == JUDGED * (3 * MS - LEAST_RECEIVING_NS)
    assert loader.receive_ns == 3 * MS


def test_starts_of_workers_are_told_from_waits_for_their_first_batch(tmp_path):
    """Every 9 steps a pass: 3 of them begin in the steps judged. 40 ms to start, 10 for a batch."""
    made = {"fetch": 8, "cpu": 8}
    again = only(trained(tmp_path, waits=10, trains=10, made=made, workers=2, starts=40, every=9))
    assert again.boundary_ns == 3 * 50 * MS
    assert again.restarts_ns == pytest.approx(3 * (40 + 2) * MS)  # work began 2 ms into the wait
    assert again.batches == JUDGED


def test_only_the_model_leaves_out_time_without_a_core(tmp_path):
    """Of every 20 ms the training thread was without a core for 5: predictions are for a quiet
    machine, and what was measured stays as it is."""
    made = {"fetch": 8, "cpu": 3, "queued": 3, "collate": 2}
    loader = only(
        trained(tmp_path, waits=10, trains=10, made=made, workers=0, no_core=5)
    )  # fmt: skip
    assert loader.no_core_ns == pytest.approx(JUDGED * 5 * MS)
    assert loader.lost_ns == JUDGED * 10 * MS
    assert loader.setting().training_ns == pytest.approx(7.5 * MS)
