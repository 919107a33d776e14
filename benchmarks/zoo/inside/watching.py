"""Tell of every optimizer and update of a script that is run as it is, without importing torch
before the script does: it may set variables that torch reads when it is imported."""

import importlib.abc
import importlib.util
import runpy
import sys
from pathlib import Path

WATCHED = "torch.optim.optimizer"


class Watch(importlib.abc.MetaPathFinder):
    """Calls `on_begin()` at the first optimizer made, and `on_update()` after each update."""

    def __init__(self, on_begin, on_update):
        self._on_begin, self._on_update = on_begin, on_update
        sys.meta_path.insert(0, self)

    def find_spec(self, name, path=None, target=None):
        if name != WATCHED:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        load = spec.loader.exec_module

        def exec_module(module):
            load(module)
            module.register_optimizer_step_post_hook(lambda *_: self._on_update())
            self._tell_first(module.Optimizer)

        spec.loader.exec_module = exec_module
        return spec

    def _tell_first(self, optimizer):
        make = optimizer.__init__

        def first(*args, **kwargs):
            optimizer.__init__ = make
            self._on_begin()
            make(*args, **kwargs)

        optimizer.__init__ = first


def run_as_main(arguments: list[str]) -> None:
    """The script and its arguments, as `python SCRIPT ...` runs it."""
    script = str(Path(arguments[0]).resolve())
    sys.argv = [script, *arguments[1:]]
    sys.path[0] = str(Path(script).parent)
    runpy.run_path(script, run_name="__main__")
