"""Recording from inside a script: `with strobe.Profiler(...)`, `@strobe.profile`, `strobe.step()`.

Everything here keeps the promise of the recorder: a wrong call is said on stderr, never raised,
except for options that do not exist, which are a mistake to mend before training starts.
"""

import atexit
import functools
import inspect
import os
import platform
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from strobe.collect import autostart, ranks, recorder
from strobe.collect.recorder import Recorder
from strobe.errors import UsageError
from strobe.model.journal import Mark
from strobe.model.manifest import Manifest
from strobe.model.options import Options

Function = TypeVar("Function", bound=Callable[..., Any])
_MODES = ("sync", "async")


class Profiler:
    """Records from `start` to `stop`, every step in full unless the options say otherwise.

    `start` may follow `stop`: all stretches lie in one run, whose folder is `run_path`.
    """

    def __init__(
        self, output_path: str | os.PathLike[str] = "strobe-run", *, start_profile: bool = True,
        **options: Any,
    ) -> None:  # fmt: skip
        if not any(options.get(name) for name in ("light", "steps", "every", "whole")):
            options["whole"] = True
        self.options = Options.from_json(options)
        self.output_path = Path(output_path)
        self.run_path: Path | None = None
        self._recorder: Recorder | None = None
        self._is_recording = self._was_asked = False
        self._start_on_enter = start_profile

    def __enter__(self) -> "Profiler":
        if self._start_on_enter:
            self.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._was_asked:
            self.stop()

    def start(self) -> None:
        if self._is_recording:
            _say("this profiler is already recording; start() changes nothing")
            return
        self._was_asked = True
        active = recorder.current
        if active is not None and active is not self._recorder:
            _say(f"already recording (started by {active.owner}); this profiler records nothing")
            return
        if self._recorder is not None and self._recorder.is_off:
            _say("this profiler has ended: its run was analysed, or could not be written; "
                 "make a new strobe.Profiler to record more")  # fmt: skip
            return
        owner = _caller()
        if self._recorder is None:
            self._recorder = self._new_recorder(owner)
            if self._recorder is None:
                return
            autostart.begin(self._recorder)
            atexit.register(self._at_exit)
        else:
            recorder.current = self._recorder
            self._recorder.resume()
            if self._recorder.hooks is not None:
                self._recorder.hooks.install()
        self._is_recording = True

    def _new_recorder(self, owner: str) -> Recorder | None:
        try:
            manifest = Manifest(
                started_unix_ns=time.time_ns(), recorded_by="strobe.Profiler",
                command=list(getattr(sys, "argv", [])), directory=os.getcwd(),
                host=platform.node(), python=platform.python_version(),
                options=self.options.to_json(),
            )  # fmt: skip
            self.run_path = _begin_run(self.output_path, manifest)
        except OSError as error:
            _say(
                f"cannot record to {self.output_path}: {error.strerror or error}; "
                "training goes on unrecorded (choose a writable output_path)"
            )
            return None
        if self.run_path != self.output_path:
            _say(f"{self.output_path} exists already; recording to {self.run_path}")
        return Recorder(self.run_path, self.options, owner)

    def step(self) -> None:
        """A step of training ends here."""
        if not self._is_recording:
            _say("step() without start(): nothing is being recorded")
            return
        step()

    def stop(self) -> None:
        if not self._is_recording or self._recorder is None:
            if not self._was_asked:
                _say("stop() without start(): nothing was being recorded")
            self._was_asked = False
            return
        self._is_recording = self._was_asked = False
        active = self._recorder
        hooks = active.hooks
        if hooks is not None:
            active.guarded(hooks.windows.end)()
            hooks.uninstall()
        active.pause()
        recorder.current = None

    def _at_exit(self) -> None:
        if self._recorder is not None and not self._is_recording:
            self._recorder.close("finished")

    def analyse(self, mode: str = "sync") -> None:
        """Turn what was recorded into tables, in another process; `async` does not wait for it."""
        if mode not in _MODES:
            raise UsageError(f"analyse has no mode {mode!r}", hint=f"modes: {', '.join(_MODES)}")
        if self._is_recording:
            self.stop()
        if self._recorder is None or self._recorder.rank is None or self.run_path is None:
            _say("nothing to analyse: no training step was recorded between start() and stop()")
            return
        self._recorder.close("finished")
        command = [sys.executable, "-m", "strobe", "build", str(self.run_path)]
        environment = {k: v for k, v in os.environ.items() if k != autostart.SESSION_VARIABLE}
        try:
            process = subprocess.Popen(
                command, env=environment, stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL, start_new_session=True,
            )  # fmt: skip
        except OSError as error:
            _say(f"cannot start the analysis: {error}; run: strobe show {self.run_path}")
            return
        if mode == "sync":
            process.wait()


def profile(
    function: Function | None = None, **options: Any
) -> Function | Callable[[Function], Function]:
    """`@strobe.profile` or `@strobe.profile(output_path=...)`: record while the function runs."""

    def decorate(function: Function) -> Function:
        profiler = Profiler(**options)

        @functools.wraps(function)
        def recorded(*args: Any, **kwargs: Any) -> Any:
            if profiler._is_recording:  # it called itself
                return function(*args, **kwargs)
            profiler.start()
            try:
                return function(*args, **kwargs)
            finally:
                if profiler._is_recording:
                    profiler.stop()

        return recorded  # type: ignore[return-value]

    return decorate if function is None else decorate(function)


def step() -> None:
    """A step of training ends here: from the first call on, nothing is guessed about steps."""
    active = recorder.current
    if active is None or active.is_off:
        return
    active.guarded(_mark_step)()


def _mark_step() -> None:
    active = recorder.current
    assert active is not None
    active.begin_training()
    active.mark(Mark.STEP)
    if active.hooks is not None:
        active.hooks.steps.said()
        active.hooks.windows.at_boundary()


@contextmanager
def scope(name: str) -> Iterator[None]:
    """Name what happens inside; it shows on the timeline."""
    active = recorder.current
    if active is None or active.is_off:
        yield
        return
    ref = active.journal.string("scope", name)
    active.mark(Mark.SCOPE_BEGAN, ref)
    try:
        yield
    finally:
        active.mark(Mark.SCOPE_ENDED, ref)


def _begin_run(path: Path, manifest: Manifest) -> Path:
    """In the folder itself, unless something lies there already; then the next free number."""
    candidate, number = path, 1
    while not ranks.take_run(candidate, manifest):
        number += 1
        candidate = path.with_name(f"{path.name}-{number}")
    return candidate


def _caller() -> str:
    """The user's line that started the recording, for a later message."""
    frame = inspect.currentframe()
    while frame is not None and frame.f_globals.get("__name__", "").startswith("strobe"):
        frame = frame.f_back
    return f"{frame.f_code.co_filename}:{frame.f_lineno}" if frame is not None else "this process"


def _say(text: str) -> None:
    sys.stderr.write(f"strobe: {text}\n")
