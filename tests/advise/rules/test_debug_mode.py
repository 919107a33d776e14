import pytest

from strobe.advise import advise, rules_named
from strobe.advise.finding import Clear, Finding
from strobe.advise.rules import debug_mode, unfused_optimizer
from strobe.reading import open_run
from tests.advise.device_drawings import Drawing
from tests.advise.drawings import same, steps
from tests.advise.operators import Op, training
from tests.helpers import make_run
from tests.warm import python, recorded

STACK_NS, FRAME_NS = 40_000, 2_000
PLACE = {"rank": [0], "what": ["debug mode"], "number": [1], "file": ["/x/train.py"],
         "line": [7], "function": ["main"], "details": ['{"mode": "detect_anomaly"}']}  # fmt: skip


def modes(mode, *values, **more):
    """Counters: whether a mode is on, at several moments."""
    rows = [(f"debug_mode_{mode}", number * 1000, value) for number, value in enumerate(values)]
    rows += [(name, 0, value) for name, value in more.items()]
    names, at_ns, found = zip(*rows, strict=True)
    return {"counters": {"rank": [0] * len(rows), "ts_ns": at_ns, "name": names, "value": found}}


def with_anomaly_detection(tmp_path, *values):
    """Two operators whose backward is checked for NaN, in steps of 1 ms."""
    stack = {"anomaly_stack_ns": STACK_NS, "anomaly_frame_ns": FRAME_NS}
    tables = {**modes("detect_anomaly", *values, **stack), "places": PLACE}
    return training(
        tmp_path, tables=tables, lengths_us={"forward": 400, "backward": 400, "update": 200},
        forward=[Op("aten::mm", 150, [[8, 8]], scope="net.a"),
                 Op("aten::relu", 30, [[8, 8]], scope="net.a")],
        backward=[Op("MmBackward0", 100, of=0), Op("aten::ne", 40, [[8, 8]]),
                  Op("aten::any", 20, [[8, 8]]), Op("ReluBackward0", 10, of=1)],
        update=[Op("aten::add_", 100, [[8, 8]])],
    )  # fmt: skip


def test_anomaly_detection_costs_stack_traces_and_checks(tmp_path):
    verdict = debug_mode.check(with_anomaly_detection(tmp_path, 1, 1, 1))
    assert isinstance(verdict, Finding) and not verdict.is_certain
    # The stack of net.a is two modules deep. Of the 30 us of relu, 12 are for those and 5 for relu
    # itself: no stack takes longer than the other 13, whatever was measured elsewhere.
    expected_us = 1.2 * 2 * (13 + 2 * 3 * 2) + 40 + 20
    assert verdict.share == pytest.approx(expected_us / 1000, abs=0.001)
    assert verdict.expected_speedup == pytest.approx(1 / (1 - verdict.share))
    assert verdict.title == (
        "torch.autograd.set_detect_anomaly is on and takes about 12% of step time."
    )
    assert verdict.fixes == ("Remove `torch.autograd.set_detect_anomaly(True)` at train.py:7",)
    assert verdict.where == "train.py:7"


def test_a_mode_that_is_on_for_some_steps_only_is_clear(tmp_path):
    assert isinstance(debug_mode.check(with_anomaly_detection(tmp_path, 1, 0, 0)), Clear)


def test_without_a_mode_it_is_clear(tmp_path):
    drawn = training(tmp_path, lengths_us={"forward": 400}, forward=[Op("aten::mm", 150)])
    assert isinstance(debug_mode.check(drawn), Clear)


def test_without_operators_it_is_a_warning_without_a_figure(tmp_path):
    drawing = steps(*same({"forward": 100_000}, 20))
    run = make_run(tmp_path, drawing, modes("detect_anomaly", 1, 1))
    verdict = advise(run, rules_named(["debug-mode"])).findings["debug-mode"]
    assert verdict.is_warning and verdict.share == 0 and verdict.expected_speedup == 1
    assert verdict.title.endswith("slows training by an unknown amount.")
    assert verdict.why == "This recording does not show what the mode costs."


def test_it_explains_an_optimizer_that_seems_slow():
    from strobe.advise import EXPLAINS

    assert unfused_optimizer.NAME in EXPLAINS[debug_mode.NAME]


def test_deterministic_algorithms_count_as_far_as_they_fill_memory(tmp_path):
    fill = Op("aten::fill_", 90, [[64, 64]])
    drawn = training(
        tmp_path, tables=modes("deterministic_algorithms", 1), lengths_us={"forward": 400},
        forward=[Op("aten::empty", 100, inside=(fill,)), Op("aten::mm", 200)],
    )  # fmt: skip
    verdict = debug_mode.check(drawn)
    assert isinstance(verdict, Finding) and verdict.share == pytest.approx(90 / 400, abs=0.01)
    assert verdict.fixes == ("Set `torch.utils.deterministic.fill_uninitialized_memory = False`",)


def test_deterministic_algorithms_that_fill_nothing_are_clear(tmp_path):
    drawn = training(
        tmp_path, tables=modes("deterministic_algorithms", 1), lengths_us={"forward": 400},
        forward=[Op("aten::fill_", 100), Op("aten::mm", 200)],
    )  # fmt: skip
    assert isinstance(debug_mode.check(drawn), Clear)


def test_launches_that_wait_for_their_kernels(tmp_path):
    """The host waits for the kernel for 40 us, then works for 50 us while the device is idle."""
    drawing = Drawing().steps()
    launchers = drawing.host("runtime", "cudaLaunchKernel", 0, 50)
    drawing.work("kernel", "gemm", 10, 50, launchers)
    blocking = drawing.training(
        tmp_path, devices=["cuda:0 H100"], **modes("CUDA_LAUNCH_BLOCKING", 1, 1)
    )
    verdict = debug_mode.check(blocking)
    assert isinstance(verdict, Finding)
    # Without the wait the host needs 60 us of the 100.
    assert verdict.expected_speedup == pytest.approx(100 / 60, rel=0.05)
    assert verdict.fixes == ("Unset CUDA_LAUNCH_BLOCKING in the environment",)


def test_a_forgotten_profiler_is_a_warning(tmp_path):
    run = make_run(tmp_path, steps(*same({"forward": 100}, 20)), modes("profiler", 1, 1))
    verdict = advise(run, rules_named(["debug-mode"])).findings["debug-mode"]
    assert verdict.is_warning and verdict.title.startswith("A profiler that the script started")


@pytest.mark.parametrize(
    ("mode", "title", "fix"),
    [
        ("jax_disable_jit", "jax_disable_jit is on",
         'Remove `jax.config.update("jax_disable_jit", True)`, or unset JAX_DISABLE_JIT'),
        ("save_graphs", "MindSpore's save_graphs is on",
         "Call `mindspore.set_context(save_graphs=0)`"),
        ("pynative_synchronize", "MindSpore's pynative_synchronize is on",
         "Call `mindspore.set_context(pynative_synchronize=False)`"),
        ("checks", "checks is on", "Turn checks off"),
    ],
)  # fmt: skip
def test_modes_of_unknown_cost_have_a_fix(tmp_path, mode, title, fix):
    run = make_run(tmp_path, steps(*same({"forward": 100}, 20)), modes(mode, 1, 1))
    verdict = advise(run, rules_named(["debug-mode"])).findings["debug-mode"]
    assert verdict.is_warning and verdict.title.startswith(title) and verdict.fixes == (fix,)


SCRIPT = """
import torch
torch.set_num_threads(1)
torch.autograd.set_detect_anomaly(True)
net = torch.nn.Sequential(*[torch.nn.Linear(8, 8) for _ in range(20)])
optimizer = torch.optim.SGD(net.parameters(), lr=1e-4)
for _ in range(60):
    optimizer.zero_grad()
    net(torch.randn(4, 8)).sum().backward()
    optimizer.step()
"""


@pytest.mark.slow
@pytest.mark.timing("a fault costs what it usually does")
def test_anomaly_detection_of_a_real_training(tmp_path):
    pytest.importorskip("torch")
    (tmp_path / "train.py").write_text(SCRIPT, encoding="utf-8")
    done = python(*recorded("RUN", "train.py"), cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    with open_run(tmp_path / "RUN") as run:
        finding = next(iter(run.advise().findings.items()))
    assert finding[0] == "debug-mode" and finding[1].where == "train.py:4"
    assert 1.5 < finding[1].expected_speedup < 10
