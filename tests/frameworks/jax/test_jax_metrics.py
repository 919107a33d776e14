"""What is recorded by itself is what the script prints, to the last bit."""

from collections import defaultdict
from pathlib import Path

import pytest

from tests.frameworks.environment import rows, run, strobe

pytestmark = pytest.mark.slow

SCRIPTS = Path(__file__).resolve().parent / "scripts" / "metrics"


def printed(text):
    found = defaultdict(list)
    for line in text.splitlines():
        if line.startswith("metric "):
            _, step, tag, value = line.split(" ")
            found[tag].append((int(step), float(value)))
    return found


@pytest.mark.parametrize("name", sorted(path.stem for path in SCRIPTS.glob("*.py")))
def test_metrics_are_what_the_script_prints(tmp_path, name):
    script = SCRIPTS / f"{name}.py"
    output = strobe("jax", "run", "-q", "--light", "-o", tmp_path / "run", script)
    query = (
        "select tag, step, value from scalars where source = 'automatic' and "
        "tag <> 'samples_per_second' order by ts_ns"
    )
    found = defaultdict(list)
    for row in rows("jax", tmp_path / "run", query):
        found[row["tag"]].append((row["step"], row["value"]))
    assert found == printed(output)
    alone = run("jax", script)
    assert alone.stdout == output
