"""Record a training script, without changing it."""

import argparse
import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

from strobe.cli.option_flags import add_option_flags, given_options
from strobe.cli.output_folder import add_output_folder, output_folder
from strobe.cli.report import note_nested, print_report, print_why_nothing, remove_if_empty, say
from strobe.cli.run_follower import Follower
from strobe.collect import analysis, inject_path
from strobe.collect.ranks import take_run
from strobe.collect.start import checks
from strobe.collect.start.autostart import SESSION_VARIABLE
from strobe.collect.start.environment import VARIABLES
from strobe.collect.start.new_run import new_manifest
from strobe.errors import StrobeError, UsageError
from strobe.messages import localized, message
from strobe.model.manifest import MANIFEST_FILE, Manifest, read_manifest, write_manifest
from strobe.model.option_values import WHICH_STEPS, asked_for, without_effect
from strobe.model.options import Options

# What a terminal or a scheduler sends to a job, and the job must get.
_FORWARDED = ("SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2", "SIGCONT")
_SENT_BY_A_PROCESS = 0  # si_code SI_USER: kill(), not the terminal, which reaches the script itself


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_output_folder(parser)
    parser.add_argument("-q", "--quiet", action="store_true", help=localized("cli/run.quiet"))
    parser.add_argument("--config", metavar="FILE", help=localized("cli/run.config"))
    parser.add_argument("-m", dest="module", metavar="MODULE", help=localized("cli/run.module"))
    parser.add_argument(
        "script",
        nargs=argparse.REMAINDER,
        metavar="SCRIPT [ARGUMENTS]",
        help=localized("cli/run.script"),
    )
    add_option_flags(parser)


def run(args: argparse.Namespace) -> int:
    options, is_on, given, asked_summary = _wish(args)
    command = _command(args)
    if not is_on:
        say(localized("cli/run.not-switched-on", config=args.config))
        return _leave_as(_supervise(command, dict(os.environ)))
    folder = output_folder(args, _name(command))
    was_there = folder.is_dir()
    manifest = new_manifest(options, "strobe run", command)
    is_recording = _prepare(folder, manifest, args.overwrite)
    more = {"summary": asked_summary, "config": args.config}
    environment = _environment(folder, options, given, more) if is_recording else dict(os.environ)
    summary = _Summary(folder, options) if is_recording and not args.quiet else None
    status = _supervise(command, environment, summary)
    if summary is not None:
        status = summary.end_of_script(status)
    if is_recording:
        _finish(folder, status)
    if summary is not None:
        summary.show_at_the_end(status)
    is_empty = is_recording and remove_if_empty(folder, was_there=was_there)
    if is_recording and not is_empty and not (summary is not None and summary.is_cancelled):
        _write_requested_files(folder, options, is_built=summary is not None)
    return _leave_as(status)


class _Wish(NamedTuple):
    """What is to be recorded, if anything is."""

    options: Options
    is_on: bool
    given: dict[str, Any]
    # Options of the SummaryMonitor of the job's file.
    summary: dict[str, Any] | None


def _wish(args: argparse.Namespace) -> _Wish:
    given: dict[str, Any] = {}
    is_on, summary = True, None
    if args.config:
        from strobe.collect.start import job_config

        in_file, summary = job_config.read(args.config), job_config.summary(args.config)
        given, is_on = in_file or {}, in_file is not None or summary is not None
        if in_file is None and summary is not None:
            given = {"light": True}
    flags = given_options(args)
    if any(flags.get(name) for name in WHICH_STEPS):
        choices = (*WHICH_STEPS, "light")
        given = {name: value for name, value in given.items() if name not in choices}
    given = {**given, **flags}
    options = Options.from_json(given)
    if args.output is None and options.output_path:
        args.output = Path(options.output_path)
    return _Wish(options, is_on, given, summary)


def _command(args: argparse.Namespace) -> list[str]:
    given: list[str] = args.script
    if args.module:
        return [sys.executable, "-m", args.module, *given]
    if given and given[0] == "--":
        return _program(given[1:])
    if not given:
        raise UsageError.of("cli/run.no-script")
    script = Path(given[0])
    if script.is_file() and (script.suffix == ".py" or not os.access(script, os.X_OK)):
        return [sys.executable, *given]
    if script.suffix == ".py" or os.sep in given[0]:
        id = "cli/run.script-is-folder" if script.is_dir() else "cli/run.script-missing"
        raise UsageError.of(id, script=given[0], folder=os.getcwd())
    return _program(given)


def _program(given: list[str]) -> list[str]:
    if not given:
        raise UsageError.of("cli/run.no-command")
    if given[0].endswith(".py") and Path(given[0]).is_file() and not os.access(given[0], os.X_OK):
        return [sys.executable, *given]
    if shutil.which(given[0]) is None:
        raise UsageError.of("cli/run.unknown-program", program=given[0])
    return given


def _name(command: list[str]) -> str:
    """What to call a run of this command: its script."""
    return next((Path(word).stem for word in command if word.endswith(".py")), command[-1])


def _prepare(folder: Path, manifest: Manifest, overwrite: bool) -> bool:
    """Create the folder; if that fails, report it, and let training run without recording."""
    try:
        if warning := checks.nearly_full(folder):
            say(warning)
        if overwrite and (folder / MANIFEST_FILE).exists():
            shutil.rmtree(folder)
        if not take_run(folder, manifest):
            raise UsageError.of("cli/run.folder-taken", where=str(folder))
        return True
    except OSError as error:
        say(localized("cli/run.cannot-record", folder=folder, reason=error.strerror or error))
        return False


def _environment(
    folder: Path, options: Options, given: dict[str, Any], more: dict[str, Any]
) -> dict[str, str]:
    environment = dict(os.environ)
    if SESSION_VARIABLE in environment:
        with contextlib.suppress(ValueError, KeyError, TypeError):
            note_nested(Path(json.loads(environment[SESSION_VARIABLE])["run"]), folder)
    for name in VARIABLES:
        if environment.pop(name, None):
            say(localized("cli/run.ignored-variable", name=name))
    session = {
        "run": str(folder.resolve()), "options": options.to_json(),
        "notes": without_effect(given), "asked": sorted(asked_for(given)), **more,
    }  # fmt: skip
    environment[SESSION_VARIABLE] = json.dumps(session)
    paths = [inject_path(), environment.get("PYTHONPATH", "")]
    environment["PYTHONPATH"] = os.pathsep.join(path for path in paths if path)
    # Kineto writes a line on stderr at each start and stop of a window.
    environment.setdefault("KINETO_LOG_LEVEL", "99")
    return environment


class _Summary:
    """Shown once: when the script has ended, or better, as soon as only its interpreter has not."""

    def __init__(self, folder: Path, options: Options) -> None:
        self._folder, self._options = folder, options
        self._is_shown, self._can_follow = False, True
        self.is_cancelled = False
        self._follower: Follower | None = None

    def is_due(self, script: int) -> bool:
        """Called repeatedly while the script, a process, runs."""
        if self._is_shown or not self._can_follow:
            return False
        try:
            if self._follower is None:
                is_full = self._options.takes_windows
                self._follower = Follower(self._folder, expects_windows=is_full)
            return self._follower.look(script)
        except Exception:  # at the end everything is read again, and errors are reported
            self._can_follow = False
            return False

    def show(self) -> None:
        self._is_shown = True
        _finish(self._folder, 0)
        self.is_cancelled = print_report(self._folder)

    def end_of_script(self, status: int) -> int:
        """How the script ended, as far as it is the script's own end.

        A Ctrl-C that cancels the summary also reaches what is left of the script, which has
        finished by then but for its interpreter.
        """
        return 0 if self.is_cancelled and status == -signal.SIGINT else status

    def show_at_the_end(self, status: int) -> None:
        if self._follower is not None:
            self._follower.close()
        if not self._is_shown:
            is_empty = print_why_nothing(self._folder)
            self.is_cancelled = not is_empty and print_report(self._folder)
        elif status:
            id = "cli/run.ended-with-code" if status > 0 else "cli/run.ended-by-signal"
            state = message(f"summary.state-{_state(status)}")
            say(localized(id, code=status, number=-status, state=state))


def _supervise(
    command: list[str], environment: dict[str, str], summary: _Summary | None = None
) -> int:
    """Run the command to its end; signals sent to us reach it. Negative: ended by that signal."""
    process = subprocess.Popen(command, env=environment)
    watched = {getattr(signal, name) for name in _FORWARDED}
    waited_for = watched | {signal.SIGCHLD}
    previous = signal.pthread_sigmask(signal.SIG_BLOCK, waited_for)
    try:
        while process.poll() is None:
            if summary is not None and summary.is_due(process.pid):
                _unblock(watched, previous)
                summary.show()
                signal.pthread_sigmask(signal.SIG_BLOCK, waited_for)
            info = signal.sigtimedwait(waited_for, 1)
            if info is None or info.si_signo == signal.SIGCHLD:
                continue
            if info.si_code == _SENT_BY_A_PROCESS and process.poll() is None:
                process.send_signal(info.si_signo)
        return process.returncode
    finally:
        _unblock(watched, previous)


def _unblock(watched: Iterable[int], previous: Iterable[int]) -> None:
    """A Ctrl-C meant for the script must not interrupt the summary."""
    while signal.sigtimedwait(watched, 0) is not None:
        pass
    signal.pthread_sigmask(signal.SIG_SETMASK, previous)


def _finish(folder: Path, status: int) -> None:
    try:
        manifest = read_manifest(folder)
        manifest.ended_unix_ns = time.time_ns()
        manifest.state = _state(status)
        manifest.exit_code = status if status >= 0 else None
        manifest.signal = -status if status < 0 else None
        write_manifest(folder, manifest)
    except (OSError, StrobeError) as error:
        why = error.strerror if isinstance(error, OSError) else error.what
        say(localized("cli/run.manifest-not-updated", reason=why))


def _state(status: int) -> str:
    by_signal = {signal.SIGINT: "interrupted", signal.SIGTERM: "terminated"}
    if status < 0:
        return by_signal.get(signal.Signals(-status), "killed")
    return {0: "finished", 130: "interrupted", 143: "terminated", 137: "killed"}.get(
        status, "failed"
    )


def _write_requested_files(folder: Path, options: Options, is_built: bool) -> None:
    """The summary has built the tables; files for other tools are still to be written."""
    mode = analysis.wanted_mode(options)
    if mode is None or (is_built and not options.formats):
        return
    wrong = analysis.start(folder, mode)
    if wrong:
        say(localized("cli/run.not-analysed", reason=wrong))


def _leave_as(status: int) -> int:
    """End as the script ended: with its code, or by its signal."""
    if status >= 0:
        return status
    number = -status
    try:
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # its core is worth keeping, not ours
        signal.signal(number, signal.SIG_DFL)
    except (OSError, ValueError):  # SIGKILL and SIGSTOP have no handler to reset
        pass
    sys.stdout.flush()
    sys.stderr.flush()
    os.kill(os.getpid(), number)
    return 128 + number  # a signal that this process ignores
