import pytest

from strobe.advise.finding import CannotTell, Clear, Finding
from strobe.advise.rules import exposed_communication
from strobe.advise.training import Training
from tests.advise.device_drawings import Drawing
from tests.advise.drawings import of_framework, same, steps
from tests.advise.evidence.test_gradient_exchange import drawn
from tests.helpers import make_run


def on_device(exposed_us, operation="all_reduce"):
    """A kernel, then a collective that outlasts it by `exposed_us` to the end of the step."""
    drawing = Drawing().steps()
    drawing.launched("kernel", "gemm", -2, 0, 100 - exposed_us)
    first = len(drawing.lines)
    drawing.work("collective", "nccl", 100 - exposed_us, 100, stream="s9@cuda:0")
    ids = range(first, len(drawing.lines))
    args = {"event_id": list(ids), "operation": [operation] * len(ids)}
    return {"collective_args": args}, drawing


def on_host(*ranks):
    """Ranks that compute and exchange gradients for given times, in µs of each step."""
    return "".join(
        steps(*same({"backward": work, "all_reduce": exchange}, 10), rank=rank)
        for rank, (work, exchange) in enumerate(ranks)
    )


def test_collectives_beside_nothing_are_found(tmp_path):
    tables, drawing = on_device(30)
    verdict = exposed_communication.check(drawing.training(tmp_path, **tables))
    assert isinstance(verdict, Finding)
    assert verdict.share == pytest.approx(0.3)
    # They could hide behind the 70 µs that are computed.
    assert verdict.expected_speedup == pytest.approx(1 / 0.7)
    assert verdict.title == "30% of step time is communication that no computation overlaps."
    assert verdict.why == (
        "The most expensive collective is all_reduce. Waiting for other ranks is included."
    )
    assert "DistributedDataParallel" in verdict.fixes[0]


def test_what_overlaps_already_can_only_be_made_less(tmp_path):
    tables, drawing = on_device(30)
    drawing.launched("kernel", "gemm", -1, 70, 80, stream="s11@cuda:0")
    verdict = exposed_communication.check(drawing.training(tmp_path, **tables))
    assert verdict.share == pytest.approx(0.2)
    assert verdict.expected_speedup == pytest.approx(1 / 0.9)
    assert "no_sync" in verdict.fixes[0]


def test_stages_of_a_pipeline_get_their_own_fix(tmp_path):
    tables, drawing = on_device(30, "send_recv")
    assert "micro-batches" in exposed_communication.check(
        drawing.training(tmp_path, **tables)).fixes[0]  # fmt: skip


@pytest.mark.parametrize(("exposed_us", "kind"), [(9, Clear), (11, Finding)])
def test_either_side_of_the_threshold(tmp_path, exposed_us, kind):
    tables, drawing = on_device(exposed_us)
    assert isinstance(exposed_communication.check(drawing.training(tmp_path, **tables)), kind)


def test_on_the_host_only_what_every_rank_spends_counts(tmp_path):
    run = make_run(tmp_path, on_host((50, 50), (70, 30)))
    verdict = exposed_communication.check(Training(run))
    assert isinstance(verdict, Finding)
    assert verdict.share == pytest.approx(0.3)
    assert verdict.expected_speedup == pytest.approx(1 / 0.7)
    assert verdict.title == "Exchanging gradients costs about 30% of step time."
    assert verdict.why == "Nothing computes while gradients are exchanged."


def test_many_exchanges_by_hand_are_best_sent_at_once(tmp_path):
    parts = [("forward", 10), ("backward", 10), *[("update", 1), ("all_reduce", 7)] * 10]
    verdict = exposed_communication.check(drawn(tmp_path, parts))
    # Ten calls of 7 µs and nine stretches of 1 µs between them, in steps of 100 µs.
    assert verdict.share == pytest.approx(0.79)
    # Nine calls less, and nine tenths of what lies between.
    assert verdict.expected_speedup == pytest.approx(1 / (1 - 0.63 - 0.081))
    assert verdict.fixes[0].startswith("Send all gradients at once")
    assert "10 times per step" in verdict.why


def test_an_exchange_after_every_micro_batch_is_best_left_to_the_last(tmp_path):
    parts = [("forward", 10), ("backward", 5), ("all_reduce", 10)] * 4
    training = drawn(tmp_path, parts)
    of_framework(training.run)
    verdict = exposed_communication.check(training)
    assert verdict.share == pytest.approx(0.4)
    assert verdict.expected_speedup == pytest.approx(1 / 0.7)
    assert "no_sync" in verdict.fixes[0]


def test_a_model_that_is_wrapped_already_is_not_told_to_be(tmp_path):
    training = drawn(tmp_path, [("forward", 50), ("backward", 25), ("all_reduce", 25)])
    of_framework(training.run)
    assert "DistributedDataParallel" in str(exposed_communication.check(training).fixes)
    wrappers = [{"wrapper": "DistributedDataParallel"}]
    training.run.manifest.ranks[0].parallel = {"wrappers": wrappers}
    verdict = exposed_communication.check(training)
    assert len(verdict.fixes) == 1 and "no_sync" in verdict.fixes[0]


@pytest.mark.parametrize(("exchange_us", "kind"), [(19, Clear), (21, Finding)])
def test_on_the_host_a_fifth_is_ordinary(tmp_path, exchange_us, kind):
    run = make_run(tmp_path, on_host((100 - exchange_us, exchange_us)))
    assert isinstance(exposed_communication.check(Training(run)), kind)


def test_without_collectives_it_is_clear(tmp_path):
    verdict = exposed_communication.check(Drawing().steps().training(tmp_path))
    assert verdict == Clear("No collective was recorded.")


def test_collectives_alone_cannot_be_judged(tmp_path):
    drawing = Drawing().steps()
    drawing.work("collective", "nccl", 10, 90)
    assert isinstance(exposed_communication.check(drawing.training(tmp_path)), CannotTell)
