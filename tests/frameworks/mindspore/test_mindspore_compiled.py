"""strobe.profile_compiled of a function of ms.jit."""

import json
from pathlib import Path

from tests.frameworks import environment

SCRIPT = Path(__file__).parent / "trainings" / "compiled.py"


def test_operators_of_a_compiled_function_have_times_shapes_and_work(tmp_path):
    done = environment.run("mindspore", SCRIPT, cwd=tmp_path, timeout_s=200)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    operators = found["graph_exec"]["operator"].values()
    assert [each["type"] for each in operators] == [
        "MatMul",
        "BiasAdd",
        "ReLU",
        "MatMul",
        "BiasAdd",
    ]
    profiler = found["profiler"]
    work = [profiler["opr_footprint"][each["id"]].get("computation") for each in operators]
    assert work == [2 * 16 * 64 * 128, None, None, 2 * 16 * 128 * 10, None]
    times = [span for each in profiler["host"].values() for span in each.values()]
    assert len(times) == 5 and all(span["end"] > span["start"] >= 0 for span in times)
    assert found["strobe"]["repeat"] == 4 and found["strobe"]["framework"] == "mindspore"
    assert "is not a compiled function" in found["refused"]
    shown = environment.strobe("mindspore", "operators", tmp_path / "predict.compiled.json")
    assert "MatMul" in shown
