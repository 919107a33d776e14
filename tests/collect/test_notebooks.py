"""Cells of notebooks are named as their user knows them."""

import sys
from types import SimpleNamespace

import pytest

from strobe.collect import notebooks, places
from strobe.collect.start.new_run import new_recorder
from strobe.model.manifest import read_manifest
from strobe.model.options import Options

CELL = "/tmp/ipykernel_12/3698143995.py"


@pytest.fixture
def kernel(monkeypatch):
    """What IPython keeps of a kernel: which cell each file is, and the notebook's variables."""
    shell = SimpleNamespace(compile=SimpleNamespace(_filename_map={CELL: 3}), user_ns={})
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))
    monkeypatch.setitem(sys.modules, "ipykernel", SimpleNamespace())
    monkeypatch.delenv("JPY_SESSION_NAME", raising=False)
    return shell


def test_a_line_of_a_cell_names_the_cell(kernel):
    names: dict = {"sys": sys}
    exec(compile("\ndef here():\n    return sys._getframe()\n", CELL, "exec"), names)
    assert places.users_line(names["here"]()) == ("In [3]", 3, "here")
    assert places.function_line(names["here"]) == ("In [3]", 2, "here")
    kernel.compile._filename_map[CELL] = 7  # the same cell, run again
    assert places.function_line(names["here"]) == ("In [7]", 2, "here")


def test_cells_that_nobody_can_name_and_files_that_are_no_cells(kernel):
    assert notebooks.cell_of("/tmp/ipykernel_12/99.py") == "notebook cell"
    assert notebooks.cell_of("<ipython-input-5-0123abcd>") == "In [5]"
    assert notebooks.cell_of("ipykernel_study/train.py") is None
    del kernel.compile
    assert notebooks.cell_of(CELL) == "notebook cell"


def test_a_notebook_is_the_title_of_its_run(kernel, monkeypatch, tmp_path):
    assert notebooks.title() == "notebook"
    monkeypatch.setenv("JPY_SESSION_NAME", "work/study.ipynb")
    assert notebooks.title() == "study.ipynb"
    kernel.user_ns["__vsc_ipynb_file__"] = "work/code.ipynb"
    made = new_recorder(tmp_path / "run", Options(light=True), "strobe.Profiler", "me")
    made.begin_training()
    made.close("finished")
    assert read_manifest(tmp_path / "run").command == ["code.ipynb"]
    monkeypatch.delitem(sys.modules, "ipykernel")
    assert notebooks.title() is None
