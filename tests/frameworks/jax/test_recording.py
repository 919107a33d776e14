"""Trainings written with JAX, recorded as they are, in an environment with the real JAX."""

import functools
import json
import socket
import subprocess
from pathlib import Path

import pytest

from tests.frameworks.environment import ROOT, environment, python_of, rows, run, strobe

pytestmark = pytest.mark.slow

SCRIPTS = Path(__file__).resolve().parent / "scripts"
STEPS = 24  # of plain.py, several.py and sharded.py


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    """The run of plain.py with a loop of this shape, and what the script said of itself."""
    folder = tmp_path_factory.mktemp("jax")

    @functools.cache
    def record(shape, *options):
        name = f"{shape} {' '.join(options)}".replace(" ", "-").replace("=", "")
        out, there = folder / f"{name}.json", folder / name
        strobe("jax", "run", "-q", *options, "-o", there, SCRIPTS / "plain.py", shape, out)
        return there, json.loads(out.read_text())

    return record


def test_losses_are_the_same_bit_for_bit_recorded_or_not(recorded, tmp_path):
    for shape in ("sync", "ahead"):
        done = run("jax", SCRIPTS / "plain.py", shape, tmp_path / "out.json")
        assert done.returncode == 0, done.stderr
        alone = json.loads((tmp_path / "out.json").read_text())
        assert recorded(shape)[1]["losses"] == alone["losses"]


@pytest.mark.parametrize(
    "shape",
    [
        "sync",
        "ahead",
        "donated",
        "two programs",
        "by hand",
        "annotated",
        "evaluating",
        "not compiled",
    ],
)
def test_every_shape_of_loop_has_its_steps(recorded, shape):
    there, said = recorded(shape)
    steps = rows("jax", there, "SELECT step, dur_ns, gap_ns FROM steps ORDER BY step")
    assert [row["step"] for row in steps] == list(range(1, STEPS + 1))
    total_s = sum(row["dur_ns"] for row in steps) / 1e9
    assert 0.8 * said["seconds"] < total_s < 1.05 * said["seconds"]


@pytest.mark.parametrize(
    ("shape", "calls"),
    [("programs", 4), ("programs", 12), ("operations", 4), ("sums", 4), ("target", 5)],
)
def test_calls_that_only_gather_gradients_are_parts_of_a_step(tmp_path, shape, calls):
    there = tmp_path / "run"
    strobe("jax", "run", "-q", "-o", there, SCRIPTS / "gathering.py", shape, str(calls))
    steps = rows("jax", there, "SELECT step, backward_ns FROM steps ORDER BY step")
    assert len(steps) == 20
    if shape != "target":  # there, what trains is known too late for a window in so few steps
        assert sum(row["backward_ns"] > 0 for row in steps) >= 10


@pytest.mark.parametrize(
    ("shape", "updates"),
    [("one", 60), ("four", 15), ("scheduled", 15), ("skipped", 13), ("donated", 15),
     ("donated ahead", 15), ("nnx", 15)],
)  # fmt: skip
def test_calls_of_which_optax_makes_one_update_are_one_step(tmp_path, shape, updates):
    """Its own counter says how many there were."""
    said = {}
    for name in ("alone", "recorded"):
        there, out = tmp_path / "run", tmp_path / f"{name}.json"
        command = ["-m", "strobe", "run", "-q", "-o", there] if name == "recorded" else []
        done = run("jax", *command, SCRIPTS / "summing.py", shape, out)
        assert done.returncode == 0, done.stderr
        said[name] = json.loads(out.read_text())
    assert said["alone"] == said["recorded"] and said["alone"]["updates"] == updates
    (steps,) = rows("jax", there, "SELECT count(*) AS n FROM steps")
    assert steps["n"] == updates


def test_steps_are_the_devices_however_far_ahead_the_script_is(recorded):
    """Calls are sent off while the device is at its first steps, and yet all steps have length."""
    there, _ = recorded("ahead")
    sent = rows("jax", there, """
        SELECT ts_ns FROM events WHERE kind = 'runtime' AND name = 'dispatch donating_step'
        ORDER BY ts_ns
    """)  # fmt: skip
    steps = rows("jax", there, "SELECT ts_ns + dur_ns AS end_ns, dur_ns FROM steps ORDER BY step")
    assert len(sent) == STEPS
    later = [step["end_ns"] for step in steps if step["end_ns"] > sent[-1]["ts_ns"]]
    assert len(later) >= 3
    # On a busy machine several may be found done at once, and their ends are only known roughly.
    assert sum(step["dur_ns"] > 300_000 for step in steps) >= STEPS - 3


def test_a_gradient_that_is_not_compiled_is_told(recorded):
    there, _ = recorded("not compiled")
    answer = json.loads(strobe("jax", "advise", there, "--json"))
    told = {finding["rule"]: finding["title"] for finding in answer["findings"]}
    assert "The gradient of `loss_of` is not compiled" in told["tiny-operators"]


def test_waiting_for_data_is_gap_and_nothing_else(recorded):
    there, _ = recorded("starved")
    query = "SELECT gap_ns + recorder_ns AS ns FROM steps WHERE step > 3 ORDER BY step"
    pause_ns = 100_000_000  # long enough in all for as many looks as the rule wants
    assert all(row["ns"] > 0.9 * pause_ns for row in rows("jax", there, query))
    answer = json.loads(strobe("jax", "advise", there, "--json"))
    assert answer["findings"][0]["rule"] == "data-starvation"
    assert answer["findings"][0]["where"].startswith("plain.py:")


@pytest.mark.parametrize("asks", ["each", "last"])
def test_waits_for_grain_are_data(tmp_path, asks):
    """An item takes a millisecond: sixteen a batch. Nothing else takes long."""
    strobe("jax", "run", "-q", "-o", tmp_path / "run", SCRIPTS / "with_grain.py", "slow", asks)
    steps = rows("jax", tmp_path / "run", "SELECT dur_ns, data_ns FROM steps WHERE step > 10")
    assert len(steps) == 20
    assert sum(row["data_ns"] for row in steps) > 0.8 * sum(row["dur_ns"] for row in steps)
    assert rows("jax", tmp_path / "run", "SELECT * FROM problems") == []
    advice = json.loads(strobe("jax", "advise", "--json", tmp_path / "run"))
    first = advice["findings"][0]
    assert first["rule"] == "data-starvation" and "grain" in first["why"]
    lines = (SCRIPTS / "with_grain.py").read_text().splitlines()
    taken = next(n for n, line in enumerate(lines, 1) if "next(iterator)" in line)
    assert first["where"] == f"with_grain.py:{taken}"


def test_batches_of_grain_that_lie_ready_are_no_waits(tmp_path):
    script = SCRIPTS / "with_grain.py"
    printed = strobe("jax", "run", "-q", "-o", tmp_path / "run", script, "quick", "each")
    steps = rows("jax", tmp_path / "run", "SELECT dur_ns, data_ns FROM steps WHERE step > 10")
    assert sum(row["data_ns"] for row in steps) < 0.3 * sum(row["dur_ns"] for row in steps)
    assert run("jax", script, "quick", "each").stdout in printed


def test_a_window_has_operators_with_scope_line_direction_and_work(recorded):
    there, _ = recorded("sync")
    (counts,) = rows("jax", there, """
        SELECT count(*) AS ops, count(a.flops) AS worked, count(*) FILTER (a.is_backward) AS back,
               count(*) FILTER (a.node LIKE '%plain.py:%') AS lines, count(DISTINCT e.step) AS steps
        FROM events e JOIN op_args a ON a.event_id = e.id WHERE e.kind = 'op'
    """)  # fmt: skip
    assert counts["ops"] > 50 and counts["worked"] > 10 and counts["back"] > 5
    assert counts["lines"] > 10
    assert counts["steps"] >= 3
    phases = rows("jax", there, """
        SELECT sum(forward_ns) AS forward, sum(backward_ns) AS backward, sum(rest_ns) AS rest,
               sum(dur_ns) AS whole FROM steps WHERE step > 3
    """)[0]  # fmt: skip
    assert phases["forward"] > 0 and phases["backward"] > 0
    assert phases["rest"] < 0.5 * phases["whole"]


def test_the_work_of_operators_adds_up_to_what_xla_says_of_the_program(recorded):
    """Each layer has a product, and one for the gradient of its weights; the second has another for
    what goes in (that of the third is one column: no product for XLA). XLA also counts single sums,
    which are few beside."""
    there, _ = recorded("sync")
    told = rows("jax", there, "SELECT name, value FROM counters WHERE name LIKE '% program_%'")
    said = {row["name"]: row["value"] for row in told}
    (summed,) = rows("jax", there, """
        SELECT sum(flops) AS flops, sum(bytes) AS bytes
        FROM (SELECT DISTINCT e.name, a.flops, a.bytes
              FROM events e JOIN op_args a ON a.event_id = e.id WHERE e.kind = 'op')
    """)  # fmt: skip
    batch, width = 512, 256
    products = 2 * batch * (32 * width * 2 + width * width * 3 + width * 2)
    assert summed["flops"] == products
    assert products < said["train_step program_flops"] < 1.02 * products
    assert 0.97 < summed["bytes"] / said["train_step program_bytes"] < 1.03


def test_compilations_have_a_function_a_cause_and_a_line(recorded):
    there, _ = recorded("ragged")
    query = "SELECT name FROM events WHERE name LIKE 'compilation % of train_step%'"
    found = rows("jax", there, query)
    assert len(found) == STEPS
    again = [row["name"] for row in found if "512, 32" in row["name"]]
    assert again == [again[0]]
    assert "x was float32[512, 32], now float32[511, 32]" in again[0]
    assert "plain.py:" in again[0]
    answer = json.loads(strobe("jax", "advise", there, "--json"))
    assert answer["findings"][0]["rule"] == "recompilation"


def test_light_recording_has_steps_and_no_window(recorded):
    there, _ = recorded("sync", "--light")
    assert not list(there.glob("rank_0/raw/window-*"))
    (steps,) = rows("jax", there, "SELECT count(*) AS n FROM steps")
    assert steps["n"] == STEPS


def test_memory_of_live_arrays_is_a_counter(recorded):
    there, _ = recorded("sync")
    found = rows("jax", there, "SELECT value FROM counters WHERE name = 'live_array_bytes'")
    assert found and all(row["value"] > 4 * 256 * 256 for row in found)


def test_threads_and_processes_beside_training_are_told(tmp_path):
    there = tmp_path / "run"
    strobe("jax", "run", "-q", "--light", "-o", there, SCRIPTS / "crowded.py")
    told = rows("jax", there, "SELECT name, max(value) AS ns FROM counters GROUP BY name")
    ns = {row["name"]: row["ns"] for row in told}
    # Each computes for a second; what the process did after the last look at it is not told.
    assert 0.99e9 < ns["python_threads_cpu_ns_total"] < 1.5e9
    assert ns["child_processes_cpu_ns_total"] > 0.3e9
    assert 0 < ns["strobe_threads_cpu_ns_total"] < 0.3e9
    looks = rows(
        "jax", there, "SELECT DISTINCT function FROM samples WHERE thread = 'thread mixer'"
    )
    assert "compute" in {row["function"] for row in looks}
    (place,) = rows("jax", there, "SELECT function, line FROM places WHERE what = 'process'")
    assert place["function"] == "compute"


def test_a_script_cannot_tell_that_it_is_recorded(tmp_path):
    alone, watched = tmp_path / "alone.json", tmp_path / "watched.json"
    done = run("jax", SCRIPTS / "transparent.py", alone)
    assert done.returncode == 0, done.stderr
    strobe("jax", "run", "-q", "-o", tmp_path / "run", SCRIPTS / "transparent.py", watched)
    assert json.loads(watched.read_text()) == json.loads(alone.read_text())


def test_flax_and_optax_with_modules_and_evaluations(tmp_path):
    there = tmp_path / "run"
    strobe("jax", "run", "-q", "-o", there, SCRIPTS / "with_flax.py")
    (steps,) = rows("jax", there, "SELECT count(*) AS n FROM steps")
    assert steps["n"] == 40
    scopes = rows("jax", there, "SELECT DISTINCT scope FROM events WHERE kind = 'op'")
    assert any("block_1" in (row["scope"] or "") for row in scopes)
    evaluations = rows("jax", there, "SELECT id FROM events WHERE name = 'evaluation'")
    assert len(evaluations) == 12


@pytest.mark.parametrize("mode", ["", "first", "each"])
def test_evaluations_that_carry_state_are_not_steps(tmp_path, mode):
    there = tmp_path / "run"
    strobe("jax", "run", "-q", "-o", there, SCRIPTS / "with_nnx.py", *mode.split())
    (steps,) = rows("jax", there, "SELECT count(*) AS n FROM steps")
    assert steps["n"] == 40


@pytest.mark.timing("the tracer starts within the window")
def test_devices_of_one_process_exchange_gradients(tmp_path):
    there = tmp_path / "run"
    strobe("jax", "run", "-q", "-o", there, SCRIPTS / "sharded.py")
    (steps,) = rows("jax", there, "SELECT count(*) AS n FROM steps")
    assert steps["n"] == STEPS
    (found,) = rows("jax", there, "SELECT count(*) AS n FROM events WHERE kind = 'collective'")
    assert found["n"] >= 8


@pytest.mark.parametrize("way", ["", "pmap"])
@pytest.mark.timing("the tracer starts within the window")
def test_processes_of_jax_distributed_are_ranks_and_keep_their_windows(tmp_path, way):
    with socket.socket() as free:
        free.bind(("localhost", 0))
        port = str(free.getsockname()[1])
    there, python = tmp_path / "run", python_of("jax")
    line = " & ".join(
        f"{python} {SCRIPTS / 'several.py'} {rank} {port} {tmp_path / str(rank)} {way}"
        for rank in (1, 0)
    )
    command = [python, "-m", "strobe", "run", "-q", "-o", there, "--", "sh", "-c", f"{line}; wait"]
    done = subprocess.run(
        command, env=environment(), cwd=tmp_path, capture_output=True, text=True, timeout=120,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "0").read_text() == (tmp_path / "1").read_text()
    steps = rows("jax", there, "SELECT rank, count(*) AS n FROM steps GROUP BY rank ORDER BY rank")
    assert steps == [{"rank": 0, "n": STEPS}, {"rank": 1, "n": STEPS}]
    for rank in (0, 1):
        assert list(there.glob(f"rank_{rank}/raw/window-*.xplane.pb.gz"))
    ranks = json.loads((there / "run.json").read_text())["ranks"]
    assert [(rank["rank"], rank["world_size"]) for rank in ranks] == [(0, 2), (1, 2)]


def test_the_scripts_own_profiler_comes_first(tmp_path):
    script = tmp_path / "profiled.py"
    text = (SCRIPTS / "plain.py").read_text()
    script.write_text(text.replace(
        "    losses = loop(params)\n",
        f"    with jax.profiler.trace({str(tmp_path / 'theirs')!r}):\n"
        "        losses = loop(params)\n",
    ))  # fmt: skip
    there = tmp_path / "run"
    done = run("jax", "-m", "strobe", "run", "-o", there, script, "sync", tmp_path / "out.json")
    assert done.returncode == 0, done.stderr
    assert "another profiler (jax.profiler) was active" in done.stderr
    assert list((tmp_path / "theirs").rglob("*.xplane.pb"))
    (steps,) = rows("jax", there, "SELECT count(*) AS n FROM steps")
    assert steps["n"] == STEPS


def test_a_profiler_that_is_started_late_sees_functions_made_before(tmp_path):
    script = tmp_path / "late.py"
    text = (SCRIPTS / "plain.py").read_text()
    script.write_text(text.replace("import sys\n", "import sys\nimport strobe\n").replace(
        "    losses = loop(params)\n",
        f"    with strobe.Profiler({str(tmp_path / 'run')!r}):\n        losses = loop(params)\n",
    ))  # fmt: skip
    done = run("jax", script, "sync", tmp_path / "out.json")
    assert done.returncode == 0, done.stderr
    (steps,) = rows("jax", tmp_path / "run", "SELECT count(*) AS n FROM steps")
    assert steps["n"] == STEPS


def test_strobe_step_says_what_a_step_is(tmp_path):
    script = tmp_path / "said.py"
    text = (SCRIPTS / "plain.py").read_text()
    script.write_text(text.replace("import sys\n", "import sys\nimport strobe\n").replace(
        "        losses.append(", "        if len(losses) % 2:\n            strobe.step()\n"
        "        losses.append(",
    ))  # fmt: skip
    strobe("jax", "run", "-q", "-o", tmp_path / "run", script, "ahead", tmp_path / "out.json")
    (steps,) = rows("jax", tmp_path / "run", "SELECT count(*) AS n FROM steps")
    assert steps["n"] == STEPS // 2


@pytest.mark.parametrize(("calls", "is_reported"), [(1, False), (12, True)])
def test_gradients_that_update_nothing_in_jax_are_reported_at_the_end(tmp_path, calls, is_reported):
    script = tmp_path / "outside.py"
    script.write_text(
        "import jax, numpy as np\n"
        "def loss_fn(w):\n    return (w**2).sum()\n"
        "w = np.ones(64, np.float32)\n"
        f"for _ in range({calls}):\n    w = w - 0.1 * np.asarray(jax.grad(loss_fn)(w))\n"
    )
    done = run("jax", "-m", "strobe", "run", "-q", "-o", tmp_path / "run", script)
    assert done.returncode == 0, done.stderr
    assert ("gradient of loss_fn" in done.stderr) == is_reported
    assert ("strobe.step()" in done.stderr) == is_reported


def test_the_collector_of_jax_is_light():
    code = (
        "import strobe.collect.jax.hooks, sys; print('jax' in sys.modules, 'numpy' in sys.modules)"
    )
    done = run("jax", "-c", code, cwd=ROOT)
    assert done.stdout.split() == ["False", "False"], done.stderr
