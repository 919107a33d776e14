"""The commands. To add one: write its module (`add_arguments`, `run`), add one line here."""

import argparse
import io
import os
import sys
from typing import NoReturn, Protocol

from strobe.cli.parser import Parser
from strobe.errors import StrobeError, UsageError
from strobe.messages import localized, message

# Name, module, group. `strobe --help` prints a line of catalogue/cli/commands.toml for each, and
# imports none of them.
COMMANDS: tuple[tuple[str, str, str], ...] = (
    ("run", "strobe.cli.commands.run", "record"),
    ("attach", "strobe.cli.commands.attach", "record"),
    ("dynamic", "strobe.cli.commands.dynamic", "record"),
    ("demo", "strobe.cli.commands.demo", "record"),
    ("advise", "strobe.cli.commands.advise", "analyse"),
    ("explain", "strobe.cli.commands.explain", "analyse"),
    ("show", "strobe.cli.commands.show", "analyse"),
    ("compare", "strobe.cli.commands.compare", "analyse"),
    ("list", "strobe.cli.commands.list_", "analyse"),
    ("operators", "strobe.cli.commands.operators", "analyse"),
    ("sql", "strobe.cli.commands.sql", "analyse"),
    ("import", "strobe.cli.commands.import_", "files"),
    ("export", "strobe.cli.commands.export", "files"),
    ("build", "strobe.cli.commands.build", "files"),
    ("start", "strobe.cli.commands.start", "pages"),
    ("stop", "strobe.cli.commands.stop", "pages"),
    ("status", "strobe.cli.commands.status", "pages"),
)

_INTERRUPTED = 130  # 128 + SIGINT, as shells count


class Command(Protocol):
    def add_arguments(self, parser: argparse.ArgumentParser) -> None: ...

    def run(self, args: argparse.Namespace) -> int: ...


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
        return _report(error, as_json=_wants_json(words))
    except BrokenPipeError:
        # The reader (head, less) has ended. Without this, Python would print an error at exit.
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
    name = words[0]
    command = _load(name)
    about = localized(f"cli/{name}.about").strip()
    parser = Parser(prog=f"strobe {name}", description=about)
    command.add_arguments(parser)
    return command.run(parser.parse_args(words[1:]))


def _leave(code: int) -> NoReturn:
    """Exit without clearing modules, which takes a tenth of the time of a small import.

    For a command that has closed its files and ended its processes.
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
        hint = message("cli/commands.did-you-mean", name=near[0])
    elif name.endswith(".py"):
        hint = message("cli/commands.to-record", script=name)
    else:
        hint = message("cli/commands.known", names=", ".join(names))
    if name.startswith("-"):
        return UsageError.of("cli/commands.unknown-option", name=name, hint=hint)
    return UsageError.of("cli/commands.unknown-command", name=name, hint=hint)


def _help() -> str:
    lines = [localized("cli/commands.title"), "", localized("cli/commands.usage")]
    shown = ""
    for name, _, group in COMMANDS:
        if group != shown:
            lines += ["", localized(f"cli/commands.group-{group}")]
            shown = group
        lines.append(f"  {name:<11}{localized(f'cli/commands.{name}')}")
    return "\n".join([*lines, "", localized("cli/commands.more")])


def _wants_json(words: list[str]) -> bool:
    # What follows `strobe run` may be the options of somebody else's script.
    return "--json" in words and words[0] != "run"


def _report(error: StrobeError, as_json: bool) -> int:
    if as_json:
        import json

        what = f"{error.what} ({error.where})" if error.where else error.what
        print(json.dumps({"ok": False, "error": what, "hint": error.hint}, ensure_ascii=False))
    else:
        sys.stdout.flush()
        print(error, file=sys.stderr)
    return error.exit_code
