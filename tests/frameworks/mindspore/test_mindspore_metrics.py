"""What is recorded by itself is what the script prints, to the last bit."""

from collections import defaultdict
from pathlib import Path

import pytest
from tests.frameworks.environment import run, strobe
from tests.frameworks.mindspore.tables import sql

pytestmark = pytest.mark.slow

SCRIPTS = Path(__file__).resolve().parent / "trainings" / "metrics"


def lines(text):
    return [line for line in text.splitlines() if line.startswith(("metric ", "result "))]


def printed(text):
    found = defaultdict(list)
    for line in lines(text):
        word, *rest = line.split(" ")
        if word == "metric":
            step, tag, value = rest
            found[tag].append((int(step), float(value)))
    return found


@pytest.mark.parametrize("name", sorted(path.stem for path in SCRIPTS.glob("*.py")))
def test_metrics_are_what_the_script_prints(tmp_path, name):
    script = SCRIPTS / f"{name}.py"
    output = strobe("mindspore", "run", "-q", "--light", "-o", tmp_path / "run", script)
    query = "select tag, step, value from scalars where source = 'automatic' order by ts_ns"
    found = defaultdict(list)
    for row in sql(tmp_path / "run", query):
        found[row["tag"]].append((row["step"], row["value"]))
    rates = found.pop("samples_per_second", [])
    assert found == printed(output)
    assert len(rates) == {"functional": 10, "graphs": 10, "model": 20}.get(name, 0)
    assert lines(run("mindspore", script).stdout) == lines(output)
