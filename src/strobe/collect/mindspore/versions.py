"""Which MindSpore this is, and where our hooks go: that moved between versions."""

import importlib
from types import ModuleType
from typing import Any

# Tested with these two and with 2.8 and 2.9; others are tried, with a warning.
OLDEST, NEWEST = (2, 7), (2, 10)


def unfamiliar(version: str) -> str:
    """The warning about a version that was not tested; empty for one that was."""
    try:
        number = tuple(int(part) for part in version.split(".")[:2])
    except ValueError:
        number = (0, 0)
    if OLDEST <= number <= NEWEST:
        return ""
    tested = " to ".join(".".join(map(str, known)) for known in (OLDEST, NEWEST))
    return f"MindSpore {version} is recorded as well as it goes: Strobe knows {tested}"


def executors() -> ModuleType | None:
    """The module that compiles and runs graphs, and the one that runs operators without them."""
    return _first("mindspore.graph.api", "mindspore.common.api")


def parser() -> ModuleType | None:
    """The functions that its C++ side calls to read the Python code of a graph."""
    return _first("mindspore.graph._parse", "mindspore._extends.parse")


def forward_homes() -> list[Any]:
    """Where the forward pass of a function whose gradient is taken runs: a function of a module, in
    older versions a method of the gradients' classes.
    """
    home = _first("mindspore.ops.composite.base")
    if home is None or hasattr(home, "_pynative_forward_run"):
        return [home]
    return [getattr(home, name, None) for name in ("GradOperation", "_Grad")]


def iterators() -> ModuleType | None:
    """The module with the iterators over datasets."""
    return _first("mindspore.dataset.engine.iterators")


def _first(*names: str) -> ModuleType | None:
    for name in names:
        try:
            return importlib.import_module(name)
        except ImportError:
            continue
    return None
