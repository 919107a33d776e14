"""Windows of full recording: odd names, a size limit, the user's own profiler, other threads."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.faults.processes import ask, lines_of_ours, problems, steps, training
from tests.warm import python, recorded

pytest.importorskip("torch")
pytestmark = pytest.mark.slow

NAMES = [
    "中文", "😀", "é", 'a "quoted" name', "back\\slash", "new\nline", "tab\t", "esc\x1b[31m",
    "plain", 'all 中文 "x" \\ 😀 \n', "x" * 3000, "strobe:1", "strobe#1",
    "</script>", "%s {0}", "",
]  # fmt: skip
NAMED = f"""
names = {NAMES!r}
train(2)
for name in names:
    with torch.profiler.record_function(name):
        train(1)
train(3)
for _ in range(4000):  # past the limit, in pieces
    train(1)
"""


def test_names_and_the_limit(tmp_path: Path):
    """One run for both: names in its first pieces, then more steps than 1 MB of timeline holds."""
    run = tmp_path / "run"
    done = python(*recorded(run, "--whole", "--timeline-limit", 1, training(tmp_path, NAMED)))
    assert done.returncode == 0, done.stderr
    (line,) = done.stderr.splitlines()
    assert line.startswith("strobe: full recording ended early: its timeline reached")
    count = 2 + len(NAMES) + 3 + 4000
    assert steps(run) == {0: count}
    found = [name for (name,) in ask(run, ANNOTATIONS)]
    assert found == NAMES
    assert any("timeline_limit (1 MB)" in what for what in problems(run))
    # It ended early: of 4000 steps only some hundreds were recorded in full.
    in_full = ask(run, "select count(distinct step) from events where kind = 'op'")[0][0]
    assert len(NAMES) < in_full < 2000
    assert sum(path.stat().st_size for path in run.glob("rank_0/raw/window*")) < 5_000_000


ANNOTATIONS = """
select name from events where kind = 'annotation' and name not like 'Optimizer.%'
and name not like 'strobe window%' order by ts_ns
"""

# The user's own profiler, laid in different ways over our window of steps 6 to 11.
OWN = """
from torch.profiler import ProfilerActivity, profile, schedule
before, count, scheduled = map(int, sys.argv[1:])

def mine(count):
    with profile(activities=[ProfilerActivity.CPU]) as profiler:
        train(count)
    return sum(e.count for e in profiler.key_averages() if e.key == "aten::addmm")

if scheduled:
    seen = []
    plan = schedule(wait=before, warmup=3, active=count, repeat=1)
    ready = lambda p: seen.append(
        sum(e.count for e in p.key_averages() if e.key == "aten::addmm"))
    with profile(activities=[ProfilerActivity.CPU], schedule=plan, on_trace_ready=ready) as p:
        for _ in range(before + 3 + count + 2):
            train(1)
            p.step()
    print(seen)
else:
    train(before)
    print(mine(count))
    train(12)
    print(mine(1))
    try:
        with profile(activities=[ProfilerActivity.CPU]) as profiler:
            train(1)
            raise ValueError("mine")
    except ValueError as error:
        print(error, len(profiler.events()) > 0)
print(train(20))
"""
# Steps before it, its own steps, whether it has a schedule: is ours taken?
OWN_PROFILERS = {
    "before": (1, 2, 0, True),
    "after": (13, 2, 0, True),
    "across the beginning": (3, 4, 0, False),
    "inside": (7, 2, 0, False),
    "around": (2, 14, 0, False),
    "warming up as ours begins": (2, 5, 1, False),
}


@pytest.fixture(scope="module")
def own_profilers(tmp_path_factory):
    """Two at a time: the ended process and the run, by name."""
    folder = tmp_path_factory.mktemp("own")
    script = training(folder, OWN)

    def record(name: str):
        run = folder / name.replace(" ", "-")
        return python(*recorded(run, script, *OWN_PROFILERS[name][:3])), run

    with ThreadPoolExecutor(2) as workers:
        return dict(zip(OWN_PROFILERS, workers.map(record, OWN_PROFILERS), strict=True))


@pytest.mark.parametrize("name", OWN_PROFILERS)
def test_the_users_own_profiler_is_complete(name: str, own_profilers):
    done, run = own_profilers[name]
    _, count, is_scheduled, is_ours_taken = OWN_PROFILERS[name]
    assert done.returncode == 0, done.stderr
    *lines, loss = done.stdout.splitlines()
    # Two layers, so two calls of addmm a step.
    assert lines == ([f"[{2 * count}]"] if is_scheduled else [f"{2 * count}", "2", "mine True"])
    assert float(loss) > 0
    assert steps(run)[0] > 20
    said = lines_of_ours(done)
    if is_ours_taken:
        assert said == []
        full = "select count(distinct step) >= 5 from events where kind = 'op'"
        assert ask(run, full) == [(True,)]
    else:
        assert len(said) in (1, 2) and all("profiler" in line for line in said), done.stderr
        assert any("profiler" in what for what in problems(run))


THREAD = """
import threading
thread = threading.Thread(target=train, args=(20,))
thread.start()
thread.join()
print("trained")
"""


def test_a_window_in_a_thread_that_ends_before_it(tmp_path: Path):
    run = tmp_path / "run"
    done = python(*recorded(run, "--whole", training(tmp_path, THREAD)))
    assert (done.returncode, done.stdout) == (0, "trained\n"), done.stderr
    assert steps(run) == {0: 20}
    assert problems(run) != [] or ask(run, "select max(step) from events where kind = 'op'") == [
        (20,)
    ]
