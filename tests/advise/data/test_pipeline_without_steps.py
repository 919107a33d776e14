"""A trace of MindData's pipeline without training steps."""

from pathlib import Path

import pytest

from strobe.advise import advise
from strobe.advise.data.pipeline_without_steps import pipeline_alone
from strobe.advise.finding import CannotTell
from strobe.advise.training import Training
from tests.analyse.data_drawings import queues
from tests.helpers import make_run
from tests.ingest.imports import imported

DATA = Path(__file__).parents[4] / "shared" / "data" / "mindspore" / "minddata_2.10"
WAITS = "".join(f"0/steps data:next~batch {n * 100}..{n * 100 + 50}\n" for n in range(11))


def drawn(tmp_path, before: int, behind: int) -> Training:
    """A map with this many of 16 places taken before and behind it, ten times."""
    names = {"GeneratorOp_2 to MapOp_1": before, "MapOp_1 to training": behind}
    rows = [(n, name, length, 16) for n in range(10) for name, length in names.items()]
    return Training(make_run(tmp_path, WAITS, queues(*rows)))


def test_the_operation_at_fault_is_a_warning_with_the_waits_of_the_loop(tmp_path):
    verdict = pipeline_alone(drawn(tmp_path, 16, 0))
    assert verdict.title == "The operation MapOp_1 limits the data pipeline."
    assert verdict.is_warning and (verdict.share, verdict.expected_speedup) == (0.0, 1.0)
    assert verdict.why == (
        "Its input queue is 100% full, and its output queue is 0% full. The trace has no training "
        "steps, so the cost per step is unknown. Waits for batches take 52% of the recorded time."
    )
    assert verdict.fixes[0] == "Set `num_parallel_workers=2` on the map operation"


def test_a_pipeline_that_keeps_up_says_nothing_of_training(tmp_path):
    assert isinstance(pipeline_alone(drawn(tmp_path, 16, 16)), CannotTell)


def test_a_real_trace_without_steps(tmp_path):
    if not DATA.exists():
        pytest.skip("shared data absent")
    run = imported(DATA / "md_slow", tmp_path)
    advice = advise(run)
    run.close()
    assert list(advice.findings) == ["data-starvation"]
    assert advice.verdict.startswith("Warning: The operation MapOp_3 limits the data pipeline. ")
    assert "step time" not in advice.verdict
