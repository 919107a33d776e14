import json
from pathlib import Path

import pytest

import strobe
from strobe.advise.finding import CannotTell, Clear, Finding
from strobe.advise.rules import data_starvation
from strobe.advise.rules.data_starvation import check
from strobe.advise.training import Training
from strobe.analyse.tables.steps import step_statistics
from tests.advise.data_runs import trained
from tests.analyse.data_drawings import step
from tests.helpers import make_run
from tests.warm import python, recorded

LOADING = Path(__file__).parents[2] / "collect" / "torch" / "loading.py"


def found(training) -> Finding:
    verdict = check(training)
    assert isinstance(verdict, Finding), verdict
    return verdict


def test_reading_without_workers_is_cured_by_workers(tmp_path):
    """30 ms of reading for 10 ms of training: three workers keep up, and a step is a quarter."""
    made = {"fetch": 30, "cpu": 0.3}
    verdict = found(trained(tmp_path, waits=30, trains=10, made=made, workers=0))
    assert verdict.stage == "reading"
    assert verdict.share == pytest.approx(0.75)
    assert verdict.expected_speedup == pytest.approx(40 / 10.5, rel=0.05)
    assert verdict.where == "train.py:31"
    assert verdict.title == "Training spends 75% of its time waiting for data."
    assert verdict.why == (
        "Batches are built in the training process: 30.0 ms to load, 10.0 ms to train on. Most of "
        "the loading time is spent waiting for a disk, a network or another process."
    )
    assert verdict.fixes[0] == (
        "Set `num_workers=3, persistent_workers=True` on the DataLoader at train.py:31"
    )
    assert [(one.what, one.value) for one in verdict.derivation] == [
        ("recorded", 30), ("counted", 27), ("per step", 40e6), ("waiting for data per step", 30e6),
        ("of step time waiting for data", 0.75),
    ]  # fmt: skip


def test_no_more_workers_are_advised_than_there_are_cores(tmp_path):
    """30 ms of reading for 1 ms of training would keep 30 workers busy; two cores get two."""
    made = {"fetch": 30, "cpu": 0.3}
    verdict = found(trained(tmp_path, waits=30, trains=1, made=made, workers=0, cores=2))
    assert "num_workers=2" in verdict.fixes[0]
    # The gain is that of two workers, a batch every 15 ms, and not that of no waiting at all.
    assert verdict.expected_speedup == pytest.approx(31 / 15.2, rel=0.05)


def test_the_share_is_the_one_of_the_steps_whatever_other_programs_took(tmp_path):
    """Of 40 ms per step the thread had no core for 20: that is in the wait and in training."""
    made = {"fetch": 30, "cpu": 15, "queued": 15}
    training = trained(tmp_path, waits=30, trains=10, made=made, workers=0, no_core=20)
    verdict = found(training)
    relation = step_statistics.run(training.run)
    (share,) = [row[9] for row in relation.fetchall() if row[1] == "data"]
    assert verdict.share == share == 0.75
    assert verdict.title == "Training spends 75% of its time waiting for data."


def test_computing_more_than_the_cores_can_is_not_cured_by_workers(tmp_path):
    """60 ms of work per batch by two workers on two cores, of which training keeps one busy."""
    made = {"fetch": 60, "cpu": 60, "send": 0.1}
    verdict = found(trained(tmp_path, waits=30, trains=10, made=made, workers=2, cores=2))
    assert verdict.stage == "transform"
    assert verdict.fixes[0].startswith("Vectorize data preparation, and cache")
    assert len(verdict.fixes) == 1
    least, most = verdict.speedup_range
    assert 1 < least < verdict.expected_speedup <= most <= 4
    assert not verdict.is_certain


def test_one_worker_that_cannot_keep_up_is_too_few(tmp_path):
    made = {"fetch": 30, "cpu": 1, "send": 0.1}
    verdict = found(trained(tmp_path, waits=20, trains=10, made=made, workers=1))
    assert verdict.stage == "workers"
    assert verdict.expected_speedup == pytest.approx(30 / 10.5, rel=0.05)
    assert verdict.why == (
        "The only worker needs 30.1 ms to build a batch, and training needs 10.0 ms per batch."
    )


def test_items_in_memory_that_are_fetched_one_by_one_are_fetched_as_a_batch(tmp_path):
    """256 items at 10 µs each and their collation are 5 ms for 5 ms of training."""
    made = {"fetch": 2.56, "cpu": 2.56, "collate": 2.44}
    drawn = {"waits": 5, "trains": 5, "made": made, "workers": 0, "cores": 2, "batch_size": 256}
    verdict = found(trained(tmp_path / "a", **drawn, collate_fn="default_collate"))
    assert verdict.stage == "transform" and "batch_size=None" in verdict.fixes[0]
    assert "items of a batch takes 10.0 µs to look up and 9.53 µs to collate." in verdict.why
    # A tenth of both stages is left.
    assert verdict.expected_speedup == pytest.approx(10 / 5.5, rel=0.02)
    # With a collate function of the user's own, a batch is not simply an index into an array.
    own = found(trained(tmp_path / "b", **drawn, collate_fn="pad"))
    assert "batch_size=None" not in own.fixes[0]


def test_the_longest_stage_is_named(tmp_path):
    made = {"fetch": 5, "cpu": 4, "collate": 20}
    assert found(trained(tmp_path, waits=25, trains=30, made=made, workers=0)).stage == "collate"


def test_the_line_at_which_the_dataset_was_sampled_is_named(tmp_path):
    looks = [(0, int((ts + 1) * 1e6), "training", "data.py:7", "[]") for ts in range(0, 2000, 70)]
    looks += [(0, int(69.9e6), "training", "train.py:50", "[]")]
    made = {"fetch": 60, "cpu": 60}
    verdict = found(
        trained(tmp_path, waits=60, trains=10, made=made, workers=0, cores=1, looks=tuple(looks))
    )
    assert verdict.where == "data.py:7"
    assert verdict.why.endswith("60.0 ms is spent computing items at data.py:7.")


def test_workers_that_are_started_again_are_restarts(tmp_path):
    """3 passes begin in 27 steps of 11 ms, each with 60 ms of starting."""
    made = {"fetch": 0.8, "cpu": 0.8, "send": 0.1}
    verdict = found(
        trained(tmp_path, waits=1, trains=10, made=made, workers=2, starts=60, every=9)
    )  # fmt: skip
    assert verdict.stage == "restarts"
    assert verdict.expected_speedup == pytest.approx(477 / (477 - 3 * 60.2), rel=0.01)
    assert verdict.fixes[0] == "Set `persistent_workers=True` on the DataLoader at train.py:31"


def test_slow_first_steps_after_a_restart_count_with_it(tmp_path):
    """Every fifth step computes 50 ms instead of 10: pages are copied after a fork."""
    made = {"fetch": 0.8, "cpu": 0.8, "send": 0.1}
    drawn = {"waits": 1, "trains": 10, "made": made, "workers": 2, "starts": 60, "every": 5}
    plain = found(trained(tmp_path / "plain", **drawn))
    slow = found(trained(tmp_path / "slow", **drawn, first_trains=50))
    assert slow.stage == "restarts" and "slows the first step after it by 40.0 ms" in slow.why
    assert "slows" not in plain.why
    # Steps 4 to 30: five restarts of 60.2 ms, and 40 ms more in each of the five steps after them.
    total = 27 * 11 + 5 * 60 + 5 * 40
    assert slow.expected_speedup == pytest.approx(total / (total - 5 * 60.2 - 5 * 40), rel=0.02)
    # Of the waits nearly all can be avoided, so that all of them are reported.
    assert slow.share == pytest.approx((27 * 1 + 5 * 60 + 5 * 40) / total, rel=0.01)


def test_what_new_workers_prepare_for_their_first_batch_counts_with_the_restart(tmp_path):
    """As when every worker opens an archive: 80 ms more for the first batch of each pass."""
    made = {"fetch": 0.8, "cpu": 0.8, "send": 0.1}
    drawn = {"waits": 1, "trains": 10, "made": made, "workers": 2, "starts": 20, "every": 5}
    slow = found(trained(tmp_path / "slow", **drawn, prepares=80))
    assert slow.stage == "restarts"
    assert "New workers spend 80.0 ms of each restart preparing their first batch." in slow.why
    total = 27 * 11 + 5 * (20 + 80)
    assert slow.expected_speedup == pytest.approx(total / (total - 5 * (20.2 + 80)), rel=0.02)
    # What an iterable dataset does when a pass begins, it does in workers that stay, too.
    iterable = trained(tmp_path / "iterable", **drawn, prepares=80, is_iterable=True)
    assert "preparing" not in found(iterable).why


def test_an_iterator_for_every_batch_is_created_once(tmp_path):
    """next(iter(loader)): 60 ms to start and 1 ms to wait in every step of 71 ms."""
    made = {"fetch": 0.8, "cpu": 0.8, "send": 0.1}
    drawn = {"waits": 1, "trains": 10, "made": made, "workers": 2, "starts": 60}
    verdict = found(trained(tmp_path, **drawn, every=1))
    assert verdict.stage == "restarts"
    assert verdict.fixes[0].startswith(
        "Create one iterator of the data loader at train.py:31 before the loop"
    )
    assert "61.0 ms each time" in verdict.why
    # What is left is to receive a batch that is ready.
    assert verdict.expected_speedup == pytest.approx(71 / 10.5, rel=0.02)
    assert verdict.speedup_range is None


def test_a_pipeline_that_is_created_for_every_batch_has_a_range(tmp_path):
    stages = {"stages": [], "num_workers": None}
    verdict = found(
        trained(
            tmp_path,
            waits=1,
            trains=10,
            made={},
            workers=0,
            starts=60,
            every=1,
            is_timed=False,
            **stages,
        )
    )
    assert verdict.stage == "restarts" and "Create one iterator" in verdict.fixes[0]
    least, most = verdict.speedup_range
    assert least < verdict.expected_speedup < most


def test_the_first_batch_of_an_epoch_is_in_nobodys_hands(tmp_path):
    made = {"fetch": 0.8, "cpu": 0.8, "send": 0.1}
    training = trained(
        tmp_path, waits=1, trains=10, made=made, workers=2, early=2, on_core=0.1, starts=20,
        every=9, persistent_workers=True,
    )  # fmt: skip
    assert isinstance(check(training), Clear)


def test_batches_that_lie_ready_and_take_long_to_take_are_the_transfer(tmp_path):
    made = {"fetch": 8, "cpu": 3, "send": 3}
    verdict = found(
        trained(tmp_path, waits=10, trains=20, made=made, workers=2, early=1, on_core=10)
    )  # fmt: skip
    assert verdict.stage == "transfer"
    assert verdict.share == pytest.approx(10 / 30)
    assert verdict.expected_speedup == pytest.approx(30 / 21)  # a tenth of it is left


def test_a_short_wait_is_clear(tmp_path):
    verdict = check(trained(tmp_path, waits=0.4, trains=10, made={"fetch": 0.4}, workers=0))
    assert verdict == Clear("Waiting for data costs only 3.8% of step time.")


def test_without_a_loader_a_short_gap_is_clear(tmp_path):
    verdict = check(Training(make_run(tmp_path, step(1, 0, 10, 0.2) + step(2, 10, 20, 0.2))))
    assert verdict == Clear("There is no data loader, and only 2.0% of step time is between steps.")


def test_without_a_loader_and_without_samples_it_cannot_tell(tmp_path):
    verdict = check(Training(make_run(tmp_path, step(1, 0, 10, 4) + step(2, 10, 20, 4))))
    assert isinstance(verdict, CannotTell)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "stage", "line"),
    [
        ({"num_workers": 0, "sleep": 0.004}, "reading", None),
        ({"num_workers": 0, "collate": 0.05}, "collate", None),
        ({"num_workers": 1, "sleep": 0.006, "persistent_workers": True}, "workers", None),
        ({"num_workers": 1, "epochs": 12}, "restarts", "return DataLoader(dataset, batch_size=8"),
    ],
)
def test_real_trainings(tmp_path, options, stage, line):
    pytest.importorskip("torch")
    wanted = json.dumps({"epochs": 5, **options})
    assert python(*recorded(tmp_path / "run", "--light", LOADING, wanted)).returncode == 0
    opened = strobe.open_run(tmp_path / "run")
    verdict = found(Training(opened.run))
    assert verdict.stage == stage
    if line:
        lines = LOADING.read_text(encoding="utf-8").splitlines()
        at = next(n for n, text in enumerate(lines, 1) if line in text)
        assert verdict.where == f"loading.py:{at}"
    assert data_starvation.NAME == "data-starvation"
