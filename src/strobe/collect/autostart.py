"""Begin recording in a process started under `strobe run`: wait for a framework, then hook in."""

import atexit
import importlib
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from strobe.collect import COLLECTORS, recorder
from strobe.collect.recorder import Recorder
from strobe.model.options import Options

# What `strobe run` tells the processes below it.
SESSION_VARIABLE = "STROBE_SESSION"


def start_from_environment() -> None:
    """Called as the interpreter starts; does nothing outside `strobe run`."""
    session = os.environ.get(SESSION_VARIABLE)
    if not session or recorder.current is not None:
        return
    data = json.loads(session)
    options = Options.from_json(data["options"])
    begin(Recorder(Path(data["run"]), options, owner="strobe run"))


def begin(new: Recorder) -> None:
    """Make it the recorder of this process."""
    recorder.current = new
    for package, path in COLLECTORS.items():
        when_imported(package, lambda path=path: hook_in(path))  # type: ignore[misc]
    atexit.register(_at_exit)
    _at_exit_of_multiprocessing_child()


def hook_in(path: str) -> None:
    active = recorder.current
    if active is None or active.is_off:
        return
    try:
        module, name = path.split(":")
        hooks = getattr(importlib.import_module(module), name)(active)
        active.hooks = hooks
        active.on_close.extend((hooks.windows.close, hooks.uninstall))
        hooks.install()
    except Exception as error:
        active.broke("install", error)


def when_imported(package: str, callback: Callable[[], None]) -> None:
    if package in sys.modules:
        callback()
    else:
        sys.meta_path.insert(0, _ImportWatch(package, callback))


class _ImportWatch:
    """A finder that finds nothing itself: it only learns when a package has been imported."""

    def __init__(self, package: str, callback: Callable[[], None]) -> None:
        self._package, self._callback = package, callback

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        if name != self._package:
            return None
        sys.meta_path.remove(self)
        spec = None
        for finder in sys.meta_path:
            find = getattr(finder, "find_spec", None)
            spec = find(name, path, target) if find is not None else None
            if spec is not None:
                break
        loader = getattr(spec, "loader", None)
        if loader is None or not hasattr(loader, "exec_module"):
            return spec
        original = loader.exec_module

        def exec_module(module: Any) -> None:
            del loader.exec_module
            original(module)
            self._callback()

        loader.exec_module = exec_module
        return spec


def _at_exit() -> None:
    if recorder.current is not None:
        recorder.current.close(recorder.end_state())


def _after_fork_in_child() -> None:
    if recorder.current is not None:
        recorder.current.after_fork_in_child()
        _at_exit_of_multiprocessing_child()


def _at_exit_of_multiprocessing_child() -> None:
    """Processes of multiprocessing leave by os._exit: atexit is not called, its finalizers are."""
    util = sys.modules.get("multiprocessing.util")
    if util is not None:
        util.Finalize(None, _at_exit, exitpriority=100)


os.register_at_fork(after_in_child=_after_fork_in_child)
