"""Every documented way to switch it on, in the words that MindSpore scripts have already."""

import json
from pathlib import Path

import pytest
from tests.frameworks import environment
from tests.frameworks.mindspore.tables import full_steps, table

SCRIPT = Path(__file__).parent / "trainings" / "words.py"

# Steps that are recorded in full, by how it is switched on.
WAYS = {
    "unconditional": set(range(1, 41)),
    "own callback": set(range(1, 6)),  # it records five steps, and counts from there
    "compiled before": set(range(1, 7)),
    "profile": set(range(5, 8)),
    "by step": set(range(5, 10)),
    "monitor": set(range(5, 10)),
    "by epoch": set(range(21, 41)),
    "dynamic": set(range(25, 29)),
}


@pytest.mark.parametrize("way", WAYS)
def test_each_way_records_its_steps(tmp_path, way):
    done = environment.run("mindspore", SCRIPT, way, "run", cwd=tmp_path, timeout_s=300)
    assert done.returncode == 0, done.stderr
    assert "internal error of Strobe" not in done.stderr, done.stderr
    found = full_steps(tmp_path / "run")
    # The first and the last step of a stretch may be cut by where it begins.
    assert WAYS[way] - {min(WAYS[way]), max(WAYS[way])} <= found <= WAYS[way]


def test_the_variable_of_mindspore_starts_us_and_not_its_own_profiler(tmp_path):
    given = {"start": True, "output_path": "run", "steps": [3, 6], "profile_memory": True,
             "aicore_metrics": 0, "hbm_ddr": True, "op_time": True}  # fmt: skip
    done = environment.run(
        "mindspore", "-c", "import strobe.collect.start.environment as e; e.start();"
        f"import runpy, sys; sys.argv = ['words.py', 'environment', 'run'];"
        f"runpy.run_path({str(SCRIPT)!r}, run_name='__main__')",
        cwd=tmp_path, timeout_s=300, MS_PROFILER_OPTIONS=json.dumps(given),
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert full_steps(tmp_path / "run") == {3, 4, 5}
    # That it trains is known when the graph of its first step has run; the step began before.
    assert min(step["ts_ns"] for step in table(tmp_path / "run", "steps")) > 0
    assert "hbm_ddr has no effect" in done.stderr
    assert not list(tmp_path.rglob("*_ascend_ms"))


def test_we_make_way_for_their_profiler(tmp_path):
    done = environment.run(
        "mindspore", "-m", "strobe", "run", "-o", tmp_path / "run", SCRIPT, "theirs too", "-",
        cwd=tmp_path, timeout_s=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "another profiler (mindspore.profiler) was active" in done.stderr
    assert list((tmp_path / "theirs").rglob("cpu_op_execute_timestamp_0.txt"))
    assert full_steps(tmp_path / "run") == set()
    assert len(table(tmp_path / "run", "steps")) == 40
