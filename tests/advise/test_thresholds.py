"""What rules agree on is defined once."""

import ast
from pathlib import Path

import pytest

import strobe.advise
from strobe.advise import thresholds
from strobe.advise.thresholds import MOST_ESTIMATED, MOST_MEASURED, speedup

ADVISE = Path(strobe.advise.__file__).parent
SHARED = {name: value for name, value in vars(thresholds).items() if name.isupper()}


def test_a_share_becomes_a_speedup_that_is_plausible():
    assert speedup(0.5) == 2.0
    assert speedup(1.0) == pytest.approx(20) == speedup(MOST_ESTIMATED)
    assert speedup(1.0, MOST_MEASURED) == pytest.approx(100)


def test_no_rule_defines_a_shared_threshold_again():
    """A rule may have one of its own under the same name, but not of the same value."""
    for path in ADVISE.rglob("*.py"):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if path.name == "thresholds.py" or not isinstance(node, ast.Assign):
                continue
            names = {target.id for target in node.targets if isinstance(target, ast.Name)}
            value = node.value.value if isinstance(node.value, ast.Constant) else None
            again = [name for name in names & SHARED.keys() if SHARED[name] == value]
            assert not again, f"{path.name} defines {again}"


def test_no_rule_has_a_cap_of_its_own():
    caps = {MOST_ESTIMATED, MOST_MEASURED}
    for path in (ADVISE / "rules").glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "min":
                numbers = {arg.value for arg in node.args if isinstance(arg, ast.Constant)}
                assert not numbers & caps, f"{path.name}:{node.lineno}"
