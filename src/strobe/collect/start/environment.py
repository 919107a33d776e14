"""`STROBE_OPTIONS='{"start": true}' python train.py`: record a script without changing it.

A line in a .pth file of the installation calls `start` when Python starts and one of the variables
is set. An error is reported once per job, and training goes on.
"""

import atexit
import os
import platform
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from strobe.collect import analysis, notices, recorder
from strobe.collect.notices import notice
from strobe.collect.ranks import start_ticks
from strobe.collect.recorder import Recorder
from strobe.collect.start import autostart, checks
from strobe.collect.start.job import TOKEN_VARIABLE, forget_empty
from strobe.collect.start.new_run import new_recorder
from strobe.errors import StrobeError
from strobe.model.option_values import asked_for, parsed, with_known_formats, without_effect
from strobe.model.options import NAMES, Options

# The second is MindSpore's own name for the same JSON.
VARIABLES = ("STROBE_OPTIONS", "MS_PROFILER_OPTIONS")
DEFAULT_OUTPUT = "data"


def start() -> None:
    """Called when the interpreter starts, in some environments twice."""
    if os.environ.get(autostart.SESSION_VARIABLE) or recorder.current is not None:
        return  # strobe run starts differently, and reports that
    variable = next((name for name in VARIABLES if os.environ.get(name)), None)
    if variable is None:
        return
    is_first = TOKEN_VARIABLE not in os.environ
    if is_first:
        pid = os.getpid()
        os.environ[TOKEN_VARIABLE] = f"{platform.node()}-{pid}-{start_ticks(pid)}"
    try:
        _begin(parsed(os.environ[variable], variable), variable, is_first)
    except StrobeError as error:
        if is_first:
            notices.write(notice("bad-variable", variable=variable))
            sys.stderr.write(f"{error}\n")


def _begin(given: Mapping[str, Any], variable: str, is_first: bool) -> None:
    given, wrong_formats = with_known_formats(given)
    options = Options.from_json(given)
    is_explicit = any(NAMES.get(name) == "start_profile" for name in given)
    if not options.start_profile or not is_explicit:
        if is_first and not is_explicit:
            notices.write(notice("not-switched-on", variable=variable))
        return
    path = Path(options.output_path or DEFAULT_OUTPUT)
    refusal = checks.refusal(path)
    if refusal is not None:
        if is_first:
            notices.write(refusal)
        return
    if variable == VARIABLES[1]:  # MindSpore would start its own profiler for the same value
        os.environ[VARIABLES[0]] = os.environ.pop(variable)
    made = new_recorder(path, options, variable, variable)
    made.notes += [*without_effect(given), *wrong_formats]
    made.asked = asked_for(given)
    # Handlers run in reverse order of registration: the recorder has closed by then.
    atexit.register(_at_exit, made, path.absolute(), os.getpid() if is_first else None)
    autostart.begin(made)


# How many steps after the last one to check for one that was to be recorded in full.
_FAR_STEPS = 10_000


def _at_exit(made: Recorder, path: Path, first_process: int | None) -> None:
    if made.rank is None:
        if first_process == os.getpid() and path.parent.is_dir():
            forget_empty(path, os.environ[TOKEN_VARIABLE])
        return
    shown = os.path.relpath(made.run) if made.run.is_relative_to(os.getcwd()) else made.run
    if made.rank == 0:
        made.say(notice("recorded", run=shown))
        too_short = _too_short(made)
        if too_short:
            made.say(too_short)
    wrong = analysis.at_the_end(made.run, made.options)
    if wrong:
        made.say(notice("not-analysed", reason=wrong, run=shown))


def _too_short(made: Recorder) -> str:
    """The warning if training ended before the first step that was to be recorded in full."""
    hooks, options = made.hooks, made.options
    if hooks is None or hooks.windows.has_begun_any or not options.takes_windows:
        return ""
    done = hooks.steps.done
    first = next(
        (n for n in range(1, done + _FAR_STEPS) if options.wants_full(n, made.rank or 0)), 0
    )
    if first <= done:
        return ""
    return notice("too-short", done=done, first=first)
