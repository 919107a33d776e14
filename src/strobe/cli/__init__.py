"""The commands. To add one: write its module (`add_arguments`, `run`), add one line here."""

import argparse
import io
import os
import sys
from typing import NoReturn, Protocol

from strobe.errors import StrobeError, UsageError

# Name, module, one line of help. `strobe --help` reads this and imports none of them.
COMMANDS: tuple[tuple[str, str, str], ...] = (
    ("run", "strobe.cli.commands.run", "record a training script as it is"),
    ("import", "strobe.cli.commands.import_", "bring in traces written elsewhere, of any format"),
    (
        "advise",
        "strobe.cli.commands.advise",
        "why it is slow, what fixing it gains, what to change",
    ),
    (
        "explain",
        "strobe.cli.commands.explain",
        "what a rule of the advice looks for, and how to fix it",
    ),
    ("show", "strobe.cli.commands.show", "the summary of a run, or any of its tables"),
    (
        "compare",
        "strobe.cli.commands.compare",
        "what got slower or faster between two runs, and why",
    ),
    ("list", "strobe.cli.commands.list_", "the runs of a directory, and what they reached"),
    ("operators", "strobe.cli.commands.operators", "the calls of operators that took longest"),
    ("sql", "strobe.cli.commands.sql", "ask a run any question, over the same tables"),
    ("export", "strobe.cli.commands.export", "write a run as a file that other tools read"),
    ("start", "strobe.cli.commands.start", "start the web pages, and print the link to them"),
    ("stop", "strobe.cli.commands.stop", "stop the web pages"),
    ("status", "strobe.cli.commands.status", "which web pages are running, and their links"),
    (
        "dynamic",
        "strobe.cli.commands.dynamic",
        "ask a training that runs for windows, or how it does",
    ),
    (
        "attach",
        "strobe.cli.commands.attach",
        "record a window in a training that runs, by its process",
    ),
    ("build", "strobe.cli.commands.build", "bring the tables of a run up to date, showing nothing"),
    ("demo", "strobe.cli.commands.demo", "record a small training that has a fault, and show it"),
)

_INTERRUPTED = 130  # 128 + SIGINT, as shells count


class Command(Protocol):
    def add_arguments(self, parser: argparse.ArgumentParser) -> None: ...

    def run(self, args: argparse.Namespace) -> int: ...


class Parser(argparse.ArgumentParser):
    """Mistakes are raised, so that they are told like any other error."""

    def error(self, message: str) -> NoReturn:
        import difflib

        unknown = message.removeprefix("unrecognized arguments: ").split("=")[0].split()[0]
        near = difflib.get_close_matches(unknown, self._option_string_actions, 1)
        suggestion = f"did you mean {near[0]}? " if unknown.startswith("--") and near else ""
        raise UsageError(message, hint=f"{suggestion}{self.prog} --help lists what there is")


def main(argv: list[str] | None = None) -> int:
    words = sys.argv[1:] if argv is None else argv
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # µ and names in any script, whatever the locale
            stream.reconfigure(encoding="utf-8", errors="replace")
    try:
        code = _dispatch(words)
        sys.stdout.flush()
        if argv is None and words[:1] == ["import"]:
            _leave(code)
        return code
    except StrobeError as error:
        return _tell(error, as_json=_wants_json(words))
    except BrokenPipeError:
        # The reader (head, less) has seen enough. Python would complain once more at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except KeyboardInterrupt:
        return _INTERRUPTED


def _dispatch(words: list[str]) -> int:
    if not words or words[0] in ("-h", "--help", "help"):
        print(_help())
        return 0
    if words[0] in ("-V", "--version"):
        from strobe.version import __version__

        print(f"strobe {__version__}")
        return 0
    command = _load(words[0])
    parser = Parser(
        prog=f"strobe {words[0]}",
        description=command.__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    command.add_arguments(parser)
    return command.run(parser.parse_args(words[1:]))


def _leave(code: int) -> NoReturn:
    """Without taking apart all that was loaded, which takes a tenth of the time of a small import.

    For a command that has closed its files and ended its processes, and that nobody waits on.
    """
    sys.stderr.flush()
    os._exit(code)


def _load(name: str) -> Command:
    import importlib

    module = next((path for known, path, _ in COMMANDS if known == name), None)
    if module is None:
        raise _unknown(name)
    command: Command = importlib.import_module(module)
    return command


def _unknown(name: str) -> UsageError:
    import difflib

    names = [known for known, _, _ in COMMANDS]
    near = difflib.get_close_matches(name, names, 1, cutoff=0.5)
    if near:
        hint = f"did you mean: strobe {near[0]}"
    elif name.endswith(".py"):
        hint = f"to record a script: strobe run {name}"
    else:
        hint = f"commands: {', '.join(names)}; strobe --help says what they do"
    what = "option" if name.startswith("-") else "command"
    return UsageError(f"no {what} {name!r}", hint=hint)


def _help() -> str:
    lines = ["Strobe: why is this training slow, and what to change.", "", "usage:"]
    lines += [f"  strobe {name:<9} {text}" for name, _, text in COMMANDS]
    lines += ["", "strobe COMMAND --help tells more; strobe --version tells the version."]
    return "\n".join(lines)


def _wants_json(words: list[str]) -> bool:
    # What follows `strobe run` may be the options of somebody else's script.
    return "--json" in words and words[0] != "run"


def _tell(error: StrobeError, as_json: bool) -> int:
    if as_json:
        import json

        what = f"{error.what} ({error.where})" if error.where else error.what
        print(json.dumps({"ok": False, "error": what, "hint": error.hint}, ensure_ascii=False))
    else:
        sys.stdout.flush()
        print(error, file=sys.stderr)
    return error.exit_code
