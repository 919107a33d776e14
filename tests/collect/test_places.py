"""The lines of the user's own code from which torch is called."""

import json
import sys
from types import FrameType, SimpleNamespace
from typing import Any

import pytest

from strobe.collect import places
from strobe.collect.places import MOST_PLACES, Line, Places, is_users, users_line
from tests.faults.processes import ask, write
from tests.warm import python, recorded


def called_from(*files: str, main: str | None = None) -> FrameType:
    """The innermost of frames whose code lies in these files, the outermost first."""
    call: Any = sys._getframe
    for file in reversed(files):
        scope: dict[str, Any] = {"call": call, "__name__": "__main__" if file == main else "a"}
        exec(compile("\n\ndef work(): return call()\n", file, "exec"), scope)
        call = scope["work"]
    return call()


SITE = "/usr/lib/python3/site-packages"


def test_the_users_line_is_the_first_outside_of_libraries():
    frame = called_from("/job/train.py", "/job/net.py", f"{SITE}/torch/nn/modules/module.py")
    assert users_line(frame) == Line("/job/net.py", 3, "work")


def test_where_all_is_installed_the_main_module_stands_for_the_user(monkeypatch):
    monkeypatch.setattr(places, "is_users", lambda file: False)
    frame = called_from(f"{SITE}/job/train.py", f"{SITE}/torch/a.py", main=f"{SITE}/job/train.py")
    assert users_line(frame) == Line(f"{SITE}/job/train.py", 3, "work")


@pytest.mark.parametrize(
    ("file", "is_own"),
    [
        ("/job/train.py", True),
        ("<stdin>", True),
        ("<ipython-input-3-a>", True),
        ("<string>", False),
        ("<frozen runpy>", False),
        (f"{SITE}/lightning/trainer.py", False),
        ("/usr/lib/python3/dist-packages/numpy/core.py", False),
        (json.__file__, False),
        (places.__file__, False),
        (places.__file__.replace("collect/places.py", "demo/train.py"), True),
    ],
)
def test_whose_file_it_is(file: str, is_own: bool):
    assert is_users(file) is is_own


def test_a_torch_outside_of_site_packages_is_not_the_users(monkeypatch: pytest.MonkeyPatch):
    torch = type(sys)("torch")
    torch.__file__ = "/src/pytorch/torch/__init__.py"
    monkeypatch.setitem(sys.modules, "torch", torch)
    assert not is_users("/src/pytorch/torch/optim/own_adam.py")
    assert is_users("/src/pytorch/my_experiment.py")


def test_a_place_is_told_once_and_not_without_end():
    facts: list[dict] = []
    seen = Places(lambda **fact: facts.append(fact))
    frame = called_from("/job/train.py")
    for _ in range(3):
        seen.see("update", frame, optimizer="SGD")
    seen.see("update", frame, optimizer="Adam")
    assert [(f["what"], f["file"], f["line"], f["details"]) for f in facts] == [
        ("update", "/job/train.py", 3, {"optimizer": "SGD"}),
        ("update", "/job/train.py", 3, {"optimizer": "Adam"}),
    ]
    for number in range(2 * MOST_PLACES):
        seen.see("update", frame, optimizer=str(number))
    assert len(facts) == MOST_PLACES


LOOP = """
import torch
from torch.utils.data import DataLoader
torch.manual_seed(0)
torch.set_num_threads(1)
net = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
loader = DataLoader(torch.zeros(12, 4), batch_size=2)
net(next(iter(loader)))  # line 9: a trial, before training
def step(x):
    optimizer.zero_grad()
    net(x).mean().backward()
    optimizer.step()
for x in loader:
    step(x)
net.eval()
with torch.no_grad():
    net(x)  # line 18: not the call that trains
"""


@pytest.mark.slow
def test_places_of_a_real_training(tmp_path):
    pytest.importorskip("torch")
    script = write(tmp_path, LOOP)
    python(*recorded(tmp_path / "run", "--light", script))
    rows = ask(tmp_path / "run", "SELECT what, number, line, function, file FROM places")
    found = {(what, number): (line, function) for what, number, line, function, _ in rows}
    assert {file for *_, file in rows} == {str(script)}
    loader = {key: value for key, value in found.items() if key[0] == "data loader"}
    assert {key: value for key, value in found.items() if key not in loader} == {
        ("data loop", 1): (14, "<module>"),
        ("data loop", 2): (9, "<module>"),
        ("model call", 1): (12, "step"),
        ("model call", 2): (9, "<module>"),
        ("model call", 3): (18, "<module>"),
        ("zero_grad", 1): (11, "step"),
        ("backward", 1): (12, "step"),
        ("update", 1): (13, "step"),
    }


BRANCHES = """
def count(rows, t, tp, fp):
    for p, g in rows:
        if p == t and g == t:
            tp[t] += 1
        elif g == t:
            fp[t] += 1
"""


def test_an_instruction_without_a_line_has_the_one_before_it():
    scope: dict[str, Any] = {}
    exec(compile(BRANCHES, "/job/train.py", "exec"), scope)
    code = scope["count"].__code__
    frame = SimpleNamespace(f_code=code, f_lineno=None, f_lasti=len(code.co_code) - 8)
    line = places.line_of(frame)  # type: ignore[arg-type]
    assert line.line in range(3, 8) and line.function == "count"
    start, last = next((s, n) for s, _, n in code.co_lines() if n == 5)
    frame.f_lasti = start
    assert places.line_of(frame).line == last  # type: ignore[arg-type]
    frame.f_lasti = -1  # before the first
    assert places.line_of(frame).line == 2  # type: ignore[arg-type]
