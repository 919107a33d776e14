"""Begin recording in a process started under `strobe run`: wait for a framework, then hook in."""

import atexit
import functools
import importlib
import json
import os
import sys
from collections.abc import Callable
from importlib.machinery import ModuleSpec
from pathlib import Path
from threading import get_ident
from typing import Any

from strobe.collect import COLLECTORS, loggers, recorder
from strobe.collect.places import function_line, users_line
from strobe.collect.recorder import Recorder
from strobe.model.journal import STARTED_PROCESS
from strobe.model.options import Options

# What `strobe run` passes to its child processes.
SESSION_VARIABLE = "STROBE_SESSION"


def start_from_environment() -> None:
    """Called as the interpreter starts; does nothing outside `strobe run`."""
    session = os.environ.get(SESSION_VARIABLE)
    if not session or recorder.current is not None:
        return
    data = json.loads(session)
    options = Options.from_stored(data["options"])
    made = Recorder(Path(data["run"]), options, owner="strobe run")
    made.notes += data.get("notes", [])
    made.asked = frozenset(data.get("asked", ()))
    begin(made)
    if data.get("summary") is not None:
        from strobe.collect.start import job_callbacks

        job_callbacks.add(made, data["summary"], data["config"])


def begin(new: Recorder) -> None:
    """Make it the recorder of this process."""
    recorder.current = new
    for package, path in COLLECTORS.items():
        when_imported(package, lambda path=path: hook_in(path))  # type: ignore[misc]
    loggers.begin(new)
    when_imported("multiprocessing.util", _watch_multiprocessing)
    when_imported("multiprocessing.process", _see_processes)
    atexit.register(_at_exit)


def hook_in(path: str) -> None:
    active = recorder.current
    if active is None or active.is_off:
        return
    try:
        module, name = path.split(":")
        hooks = getattr(importlib.import_module(module), name)(active)
        active.add_hooks(hooks)
        hooks.install()
    except Exception as error:
        active.broke("install", error)


def when_imported(package: str, callback: Callable[[], None]) -> None:
    """Call it when the package is fully imported: now, or when its import is over."""
    if package not in sys.modules:
        for finder in sys.meta_path:
            if isinstance(finder, _ImportWatch) and finder.package == package:
                finder.callback = callback  # replaces that of an earlier recorder
                return
        sys.meta_path.insert(0, _ImportWatch(package, callback))
        return
    spec = getattr(sys.modules[package], "__spec__", None)
    if type(spec) is ModuleSpec and getattr(spec, "_initializing", False):
        _watch(spec, callback)
    else:
        callback()


def _watch(spec: ModuleSpec, callback: Callable[[], None]) -> None:
    spec.__dict__["_strobe"] = callback
    spec.__class__ = _WatchedSpec


class _ImportWatch:
    """A finder that finds nothing itself; it only detects when a package was imported.

    It stays until then: libraries often look for a package (`importlib.util.find_spec`) long before
    they import it.
    """

    def __init__(self, package: str, callback: Callable[[], None]) -> None:
        self.package, self.callback = package, callback
        self._looking: set[int] = set()  # threads that are asking the other finders

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        thread = get_ident()
        if name != self.package or thread in self._looking:
            return None
        self._looking.add(thread)
        try:
            spec = self._found(name, path, target)
        finally:
            self._looking.discard(thread)
        if type(spec) is ModuleSpec:
            _watch(spec, self._imported)
        return spec

    def _found(self, name: str, path: Any, target: Any) -> Any:
        for finder in [finder for finder in sys.meta_path if finder is not self]:
            find = getattr(finder, "find_spec", None)
            spec = find(name, path, target) if find is not None else None
            if spec is not None:
                return spec
        return None

    def _imported(self) -> None:
        if self in sys.meta_path:
            sys.meta_path.remove(self)
            self.callback()


class _WatchedSpec(ModuleSpec):
    """The import system resets `_initializing` when it is done, which is when we are called.

    A wrapped loader would work too, but would show in the traceback of an import that fails.
    """

    @property
    def _initializing(self) -> bool:
        return bool(self.__dict__.get("_initializing"))

    @_initializing.setter
    def _initializing(self, is_so: bool) -> None:
        self.__dict__["_initializing"] = is_so
        if is_so:
            return
        self.__class__ = ModuleSpec  # type: ignore[assignment]
        callback = self.__dict__.pop("_strobe")
        if self.name in sys.modules:
            callback()


def _at_exit() -> None:
    if recorder.current is not None:
        recorder.current.close(recorder.end_state())


def _after_fork_in_child() -> None:
    if recorder.current is not None:
        recorder.current.after_fork_in_child()


def _watch_multiprocessing() -> None:
    """Its children catch their exceptions and exit by os._exit, but run its own finalizers."""
    from multiprocessing import process, util

    def at_exit() -> None:
        if process.parent_process() is not None:
            _at_exit()

    def finalize(_: Any = None) -> None:
        util.Finalize(None, at_exit, exitpriority=100)

    finalize()
    # A forked child first clears all finalizers, then calls this.
    util.register_after_fork(_at_exit, finalize)


def _see_processes() -> None:
    """Child processes may take training's cores, so remember the function that each of
    them runs.
    """
    from multiprocessing.process import BaseProcess

    original = BaseProcess.start

    @functools.wraps(original)
    def start(process: Any) -> None:
        active = recorder.current
        if active is not None and not active.is_off:
            try:
                # multiprocessing deletes it once the process has started.
                runs = getattr(process, "_target", None) or type(process).run
                line = function_line(runs) or users_line(sys._getframe(1))
                active.places.tell(STARTED_PROCESS, line)
            except Exception as error:
                active.broke("process_started", error)
        original(process)

    BaseProcess.start = start  # type: ignore[assignment,method-assign]


os.register_at_fork(after_in_child=_after_fork_in_child)
