"""Which cell called what: paths and moments of calls, without MindSpore."""

import json
import threading

import pytest

from strobe.collect.mindspore.cells import CELLS_FILE, CellCalls


class Recorder:
    """Keeps what broke."""

    def __init__(self):
        self.faults = []

    def guarded(self, function):
        def hook(*args):
            try:
                return function(*args)
            except Exception as error:
                self.faults.append(error)

        return hook


class Cell:
    def __init__(self, **parts):
        self.parts = parts

    def cells_and_names(self, prefix=""):
        yield prefix, self
        for name, part in self.parts.items():
            yield from part.cells_and_names(f"{prefix}.{name}" if prefix else name)


class Net(Cell):
    pass


@pytest.fixture
def recorder():
    return Recorder()


def written(calls: CellCalls, folder) -> list[str]:
    calls.write(folder)
    path = folder / CELLS_FILE
    return [name for name, _, _ in json.loads(path.read_text())] if path.exists() else []


def test_parts_are_named_below_the_first_cell_that_is_called(recorder, tmp_path):
    inner = Cell()
    net, waits = Net(block=Cell(up=inner)), []
    calls = CellCalls(recorder, lambda: waits.append(1))
    calls.original = lambda cell: calls.around(inner) if cell is net else 7
    calls.begin()
    assert calls.around(net) == 7
    assert written(calls, tmp_path) == ["Net.block.up", "Net"]
    assert len(waits) == 4 and not calls.is_on


def test_a_cell_that_cannot_be_named_is_called_all_the_same(recorder, tmp_path):
    calls = CellCalls(recorder, lambda: None)
    calls.original = lambda cell: "called"
    calls.begin()
    assert calls.around(object()) == "called"
    assert written(calls, tmp_path) == [] and len(recorder.faults) == 1


def test_errors_of_the_scripts_own_go_to_the_script(recorder):
    def wait():
        raise RuntimeError("an operator failed")

    calls = CellCalls(recorder, wait)
    calls.begin()
    with pytest.raises(RuntimeError, match="an operator failed"):
        calls.around(Cell())


def test_other_threads_are_left_alone(recorder, tmp_path):
    calls = CellCalls(recorder, lambda: None)
    calls.begin()
    thread = threading.Thread(target=lambda: calls.around(Cell()))
    thread.start()
    thread.join()
    assert written(calls, tmp_path) == []
