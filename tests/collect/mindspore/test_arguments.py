"""What operators are given: notes of their calls, without MindSpore."""

import json
import threading
from types import SimpleNamespace

import pytest

from strobe.collect.mindspore import arguments
from strobe.collect.mindspore.arguments import ARGUMENTS_FILE, OperatorArguments
from tests.collect.mindspore.test_cells import Recorder


def tensor(*shape: int) -> SimpleNamespace:
    return SimpleNamespace(shape=shape)


@pytest.fixture
def home(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """The module whose functions call operators."""
    made = SimpleNamespace(
        pyboost_concat=lambda primitive, given: "joined",
        pyboost_matmul=lambda primitive, given: "multiplied",
        other=lambda primitive, given: "not an operator",
    )
    monkeypatch.setattr(arguments.importlib, "import_module", lambda name: made)
    return made


def written(noted: OperatorArguments, folder) -> list[list]:
    noted.write(folder)
    path = folder / ARGUMENTS_FILE
    return [row[:2] for row in json.loads(path.read_text())] if path.exists() else []


def test_shapes_of_tensors_and_of_lists_of_them_are_noted(home, tmp_path):
    before = dict(vars(home))
    made = []
    noted = OperatorArguments(Recorder(), made.append)
    noted.begin()
    matmul, concat = SimpleNamespace(name="MatMul"), SimpleNamespace(name="Concat")
    assert home.pyboost_matmul(matmul, [tensor(2, 3), tensor(3, 4), True]) == "multiplied"
    assert home.pyboost_concat(concat, [(tensor(2), tensor(5)), 0]) == "joined"
    home.other(matmul, [tensor(1)])
    assert written(noted, tmp_path) == [
        ["MatMul", [[2, 3], [3, 4], []]], ["Concat", [[[2], [5]], []]],
    ]  # fmt: skip
    assert made == ["multiplied", "joined"]
    assert vars(home) == before


def test_after_the_step_nothing_is_noted(home, tmp_path):
    before = dict(vars(home))
    noted = OperatorArguments(Recorder(), print)
    noted.begin()
    noted.begin()  # a window that follows at once
    noted.rest()
    assert vars(home) == before
    assert written(noted, tmp_path) == []


def test_a_call_that_cannot_be_noted_is_made_all_the_same(home, tmp_path):
    recorder = Recorder()
    noted = OperatorArguments(recorder, print)
    noted.begin()
    assert home.pyboost_matmul("has no name", [tensor(2)]) == "multiplied"
    assert written(noted, tmp_path) == [] and len(recorder.faults) == 1


def test_other_threads_are_left_alone(home, tmp_path):
    noted = OperatorArguments(Recorder(), print)
    noted.begin()
    given = (SimpleNamespace(name="MatMul"), [tensor(2, 3)])
    thread = threading.Thread(target=lambda: home.pyboost_matmul(*given))
    thread.start()
    thread.join()
    assert written(noted, tmp_path) == []


def test_a_version_that_has_no_such_module_notes_nothing(monkeypatch, tmp_path):
    def fail(name):
        raise ImportError(name)

    monkeypatch.setattr(arguments.importlib, "import_module", fail)
    noted = OperatorArguments(Recorder(), print)
    noted.begin()
    assert written(noted, tmp_path) == []


def test_an_operator_is_called_as_the_script_calls_it(home):
    home.pyboost_matmul = lambda primitive, given, *, out=None: out
    noted = OperatorArguments(Recorder(), print)
    noted.begin()
    given = [tensor(2, 3), tensor(3, 4)]
    assert home.pyboost_matmul(SimpleNamespace(name="MatMul"), given, out="there") == "there"
