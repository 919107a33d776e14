"""Build the tables of a run when recording has ended, in a process that outlives this one."""

import os
import subprocess
import sys
from pathlib import Path

from strobe.collect.notices import notice
from strobe.collect.ranks import have_all_ended
from strobe.model.options import Options

MODES = ("sync", "async")

# The output of an analysis that runs in the background.
LOG_FILE = "analysis.log"

# The analysis must not record itself.
_OURS = ("STROBE_SESSION", "STROBE_OPTIONS", "MS_PROFILER_OPTIONS", "STROBE_JOB", "STROBE_JOB_RUN")


def wanted_mode(options: Options) -> str | None:
    """For recordings that end by themselves: files that were requested need an analysis."""
    needs_one = options.formats or options.data_simplification
    return options.analyse_mode or ("sync" if needs_one else None)


def at_the_end(run: Path, options: Options) -> str | None:
    """Analyse if the options ask for it; the last rank to end does so. Returns the
    error, if any.
    """
    mode = wanted_mode(options)
    if mode is None or not have_all_ended(run):
        return None
    return start(run, mode)


def command_environment() -> dict[str, str]:
    """For a `strobe` command started from a training process."""
    environment = {name: value for name, value in os.environ.items() if name not in _OURS}
    paths = [str(Path(__file__).parents[2]), environment.get("PYTHONPATH", "")]
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, paths))
    return environment


def start(run: Path, mode: str) -> str | None:
    """Returns the error, if the caller waits for the analysis."""
    environment = command_environment()
    command = [sys.executable, "-m", "strobe", "build", str(run)]
    try:
        if mode == "sync":
            done = subprocess.run(
                command, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE, start_new_session=True, check=False,
            )  # fmt: skip
            words = done.stderr.decode(errors="replace").strip().splitlines()
            return words[-1] if done.returncode and words else None
        # Its output goes to a file: a program that reads our stderr to the end must not wait for
        # it.
        with open(run / LOG_FILE, "ab") as log:
            subprocess.Popen(
                [*command, "--gently"], env=environment, stdin=subprocess.DEVNULL, stdout=log,
                stderr=log, start_new_session=True,
            )  # fmt: skip
    except OSError as error:
        return notice("cannot-analyse", reason=error.strerror or error)
    return None
