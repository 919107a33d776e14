"""Windows of full recording by torch.profiler, in real processes."""

import pytest

import strobe
from strobe.analyse.summary import summarise
from strobe.ingest.building.opening import open_run_dir
from tests.faults.processes import python, recorded, training, write

pytest.importorskip("torch")

pytestmark = pytest.mark.slow

WITHOUT_OPTIMIZER = """
import sys, torch
net = torch.nn.Linear(8, 8)
for _ in range(12):
    net(torch.ones(2, 8)).sum().backward()
print("torch._inductor" in sys.modules, hasattr(torch, "_inductor"))
"""

# A profiler that takes a second of CPU time to stop.
EXPENSIVE = """
import time
stop = torch.profiler.profile.stop

def slow(profiler):
    stop(profiler)
    until = time.thread_time() + 1
    while time.thread_time() < until:
        pass

torch.profiler.profile.stop = slow
train(20)
"""


def in_full(folder):
    run = strobe.open_run(folder)
    ((count,),) = run.sql("SELECT count(*) FROM steps WHERE is_recorded").fetchall()
    return count, [what for (what,) in run.sql("SELECT what FROM problems").fetchall()]


def test_a_window_does_not_import_the_compiler(tmp_path):
    """torch.profiler would, in the training thread: 900 modules, seconds of CPU time."""
    script = write(tmp_path, WITHOUT_OPTIMIZER)
    done = python(*recorded(tmp_path / "run", script))
    assert (done.returncode, done.stdout) == (0, "False True\n"), done.stderr
    assert in_full(tmp_path / "run") == (5, [])


def test_the_default_window_ends_early_where_it_costs_too_much(tmp_path):
    script = training(tmp_path, EXPENSIVE)
    done = python(*recorded(tmp_path / "run", script))
    assert (done.returncode, done.stderr) == (0, "")
    count, problems = in_full(tmp_path / "run")
    assert 1 <= count < 5
    (what,) = problems
    assert what.startswith("full recording ended at step 8: it used")


def test_the_default_window_ends_inside_a_step_that_is_too_long(tmp_path):
    """As with LBFGS, whose steps run many forward and backward passes."""
    script = training(tmp_path, """
from strobe.collect.torch import windows
windows._MOST_EVENTS = 1600
optimizer = torch.optim.LBFGS(net.parameters(), max_iter=10)
x = torch.randn(64, 8)

def closure():
    optimizer.zero_grad()
    loss = net(x).square().mean()
    loss.backward()
    return loss

for _ in range(10):
    with torch.profiler.record_function("mine"):
        optimizer.step(closure)
""")  # fmt: skip
    done = python(*recorded(tmp_path / "run", script))
    assert (done.returncode, done.stderr) == (0, "")
    count, (what,) = in_full(tmp_path / "run")
    assert count == 0 and "about 1,600 events" in what
    run = strobe.open_run(tmp_path / "run")
    ((steps,),) = run.sql("SELECT count(*) FROM steps").fetchall()
    ((operators,),) = run.sql("SELECT count(*) FROM events WHERE kind = 'op'").fetchall()
    assert steps == 10 and operators > 400


def test_steps_that_were_asked_for_are_all_recorded(tmp_path):
    script = training(tmp_path, EXPENSIVE)
    done = python(*recorded(tmp_path / "run", "--steps", "4:9", script))
    assert (done.returncode, done.stderr) == (0, "")
    assert in_full(tmp_path / "run") == (5, [])


def test_the_run_knows_what_writing_windows_cost(tmp_path):
    script = training(tmp_path, "train(12)")
    assert python(*recorded(tmp_path / "run", script)).returncode == 0
    cost = summarise(open_run_dir(tmp_path / "run"))["recorded"]["cost"]
    assert cost["recorder_ns"] > 0 and cost["writing_cpu_ns"] > 0
    shown = python("-m", "strobe", "show", tmp_path / "run")
    assert "overhead" in shown.stdout and "of step time" in shown.stdout


@pytest.mark.parametrize(
    ("how", "why"),
    [
        ("lambda self, path: None", "torch.profiler wrote no trace, and does not say why"),
        ("lambda self, path: shutil.rmtree(os.path.dirname(path))", "No such file or directory"),
    ],
)
def test_a_window_that_is_not_written_says_why(tmp_path, how, why):
    script = training(tmp_path, f"""
import shutil
torch.profiler.profile.export_chrome_trace = {how}
train(20)
""")  # fmt: skip
    done = python(*recorded(tmp_path / "run", script))
    assert done.returncode == 0
    assert "a window of full recording was lost: " in done.stderr
    assert why in done.stderr and "disk full" not in done.stderr


def test_a_run_recorded_in_full_from_end_to_end_says_so(tmp_path):
    script = training(tmp_path, "train(12)")
    assert python(*recorded(tmp_path / "run", "--whole", script)).returncode == 0
    shown = python("-m", "strobe", "show", tmp_path / "run")
    assert "recorded in full, which slows them down" in " ".join(shown.stdout.split())
    assert "a profiler that the script started" not in shown.stdout
