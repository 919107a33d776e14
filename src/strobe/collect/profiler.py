"""Recording from inside a script: `with strobe.Profiler(...)`, `@strobe.profile`, `strobe.step()`.

As in the recorder, a wrong call is reported on stderr, never raised. The exception are options that
do not exist: a mistake to fix before training starts.
"""

import atexit
import functools
import inspect
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from strobe.collect import analysis, notices, recorder
from strobe.collect.notebooks import cell_of
from strobe.collect.notices import notice
from strobe.collect.recorder import Recorder
from strobe.collect.start import autostart, checks, job
from strobe.collect.start.new_run import new_recorder
from strobe.errors import UsageError
from strobe.model.journal import Mark
from strobe.model.option_values import (
    WHICH_STEPS,
    asked_for,
    with_known_formats,
    without_effect,
)
from strobe.model.options import NAMES, Options

Function = TypeVar("Function", bound=Callable[..., Any])

DEFAULT_OUTPUT = "strobe-run"


class Profiler:
    """Records from `start` to `stop`, every step in full unless the options say otherwise.

    With `start_profile=True` it records from its creation. `start` may follow `stop`, and `with
    profiler:` may be used several times: all of it is one run, whose folder is `run_path`.
    """

    def __init__(self, output_path: str | os.PathLike[str] | None = None, **options: Any) -> None:
        """The options of docs/reference/options.md, under any of their names."""
        given = dict(options) if output_path is None else {"output_path": output_path, **options}
        given, wrong_formats = with_known_formats(given)
        self._notes, self._asked = [*without_effect(given), *wrong_formats], asked_for(given)
        chosen = Options.from_json(given)
        waits = chosen.dynamic or chosen.watch
        if chosen.op_time and not waits and not any(getattr(chosen, name) for name in WHICH_STEPS):
            chosen = Options.from_json({**given, "whole": True})
        self.options = chosen
        self.output_path = Path(chosen.output_path or DEFAULT_OUTPUT)
        self._recorder: Recorder | None = None
        self._is_recording = self._was_asked = self._is_finished = False
        self._was_started = False
        if "start_profile" in self._asked:
            self.start()

    @classmethod
    def from_config(cls, path: str | os.PathLike[str]) -> "Profiler":
        """From a job's YAML file; with `profile: false`, it records nothing."""
        from strobe.collect.start import job_config

        given = job_config.read(path)
        if given is None:
            return _Silent()
        return cls(**given)

    @property
    def run_path(self) -> Path | None:
        """The folder that is recorded to, once there is one."""
        return self._recorder.run if self._recorder is not None else None

    @property
    def recorder(self) -> Recorder | None:
        return self._recorder

    @property
    def is_recording(self) -> bool:
        return self._is_recording

    def __enter__(self) -> "Profiler":
        if self.options.start_profile and not self._is_recording:
            self.start()
        return self

    def __exit__(self, *_: object) -> None:
        """The block may be entered again, so files are written when the script ends, or by
        `analyse`.

        In a notebook, nobody knows when that is.
        """
        if self._was_asked:
            self.stop()
        if _is_interactive():
            self.finish()

    def start(self) -> None:
        if self._is_recording:
            notices.write(notice("already-recording"))
            return
        self._was_asked = self._was_started = True
        active = recorder.current
        if active is not None and active is not self._recorder:
            notices.write(notice("other-is-recording", owner=active.owner))
            return
        if self._recorder is not None and self._recorder.is_off:
            notices.write(notice("profiler-ended"))
            return
        if self._recorder is None:
            self._recorder = self._new_recorder(_caller())
            if self._recorder is None:
                return
            autostart.begin(self._recorder)
            atexit.register(self._at_exit)
        else:
            recorder.current = self._recorder
            self._recorder.resume()
            for hooks in self._recorder.installed:
                hooks.install()
        self._is_recording = True

    def _new_recorder(self, owner: str) -> Recorder | None:
        refusal = checks.refusal(self.output_path)
        if refusal is not None:
            notices.write(refusal)
            return None
        if (missing := checks.no_framework()) is not None:
            notices.write(missing)
        try:
            made = new_recorder(self.output_path, self.options, "strobe.Profiler", owner)
            found = made.run
        except OSError as error:
            reason = error.strerror or error
            notices.write(notice("cannot-record", path=self.output_path, reason=reason))
            return None
        made.notes += self._notes
        made.asked = self._asked
        if found.name != self.output_path.name:
            taken = self.output_path.with_name(found.name)
            notices.write(notice("path-taken", path=self.output_path, taken=taken))
        return made

    def step(self) -> None:
        """A training step ends here."""
        if not self._is_recording:
            notices.write(notice("step-without-start"))
            return
        step()

    def stop(self) -> None:
        if not self._is_recording or self._recorder is None:
            if not self._was_asked:
                notices.write(notice("stop-without-start"))
            self._was_asked = False
            return
        self._is_recording = self._was_asked = False
        active = self._recorder
        for hooks in active.installed:
            active.guarded(hooks.windows.end)()
            hooks.uninstall()
        active.pause()
        recorder.current = None

    def _at_exit(self) -> None:
        if self._recorder is None:
            return
        if not self._is_recording:
            self._recorder.close("finished")
        self.finish()
        if not self._has_recorded():
            job.forget_unused(self._recorder.run)

    def _has_recorded(self) -> bool:
        return self._recorder is not None and self._recorder.rank is not None

    def finish(self) -> None:
        """Recording is over: analyse if the options ask for it. Runs once."""
        if self._recorder is None or not self._has_recorded() or self._is_finished:
            return
        if analysis.wanted_mode(self.options) is None:
            return
        self._is_finished = True
        self._recorder.close(recorder.end_state())
        wrong = analysis.at_the_end(self._recorder.run, self.options)
        if wrong:
            notices.write(notice("not-analysed", reason=wrong, run=self._recorder.run))

    def analyse(self, mode: str | None = None) -> None:
        """Build the tables from the recording, in another process; `async` does not wait for it."""
        mode = mode or self.options.analyse_mode or "sync"
        if mode not in analysis.MODES:
            raise UsageError.of(
                "errors/python.unknown-mode",
                mode=repr(mode),
                known=", ".join(map(str, analysis.MODES)),
            )
        if self._is_recording:
            self.stop()
        if self._recorder is None and not self._was_started:
            notices.write(notice("never-started"))
            return
        if self._recorder is None or not self._has_recorded():
            notices.write(notice("nothing-to-analyse"))
            return
        self._is_finished = True
        self._recorder.close("finished")
        wrong = analysis.start(self._recorder.run, mode)
        if wrong:
            notices.write(notice("not-analysed", reason=wrong, run=self._recorder.run))


class _Silent(Profiler):
    """For a configuration with `profile: false`: every call is accepted and does nothing."""

    def start(self) -> None:
        return

    def stop(self) -> None:
        return

    def step(self) -> None:
        return

    def analyse(self, mode: str | None = None) -> None:
        return


def _is_interactive() -> bool:
    return hasattr(sys, "ps1") or "ipykernel" in sys.modules


def profile(
    function: Function | None = None, **options: Any
) -> Function | Callable[[Function], Function]:
    """`@strobe.profile` or `@strobe.profile(output_path=...)`: record while the function runs."""
    if function is not None and not callable(function):
        raise UsageError.of("errors/python.not-a-function", value=repr(function))

    def decorate(function: Function) -> Function:
        profiler = Profiler(**_without_start(options))

        @functools.wraps(function)
        def recorded(*args: Any, **kwargs: Any) -> Any:
            if profiler.is_recording:  # it called itself recursively
                return function(*args, **kwargs)
            profiler.start()
            try:
                return function(*args, **kwargs)
            finally:
                if profiler.is_recording:
                    profiler.stop()

        return recorded  # type: ignore[return-value]

    return decorate if function is None else decorate(function)


def _without_start(options: dict[str, Any]) -> dict[str, Any]:
    """A decorator records only while the function runs, so it ignores `start_profile`."""
    return {name: value for name, value in options.items() if NAMES.get(name) != "start_profile"}


def step() -> None:
    """A training step ends here. After the first call, step boundaries are no longer detected."""
    active = recorder.current
    if active is None or active.is_off:
        return
    active.guarded(_mark_step)()


def _mark_step() -> None:
    active = recorder.current
    assert active is not None
    active.begin_training()
    step_said = getattr(active.hooks, "step_said", None)
    if step_said is not None:  # only frameworks whose device may be behind the host
        step_said()
        return
    active.mark(Mark.STEP)
    if active.hooks is not None:
        active.hooks.steps.said()
        active.hooks.windows.at_boundary()


def _caller() -> str:
    """The user's line that started the recording, for later messages."""
    frame = inspect.currentframe()
    while frame is not None and frame.f_globals.get("__name__", "").startswith("strobe"):
        frame = frame.f_back
    if frame is None:
        return "this process"
    file = frame.f_code.co_filename
    return f"{cell_of(file) or file}:{frame.f_lineno}"
