"""The parser of a command: help in the user's language, mistakes as errors like any other."""

import argparse
import contextlib
import re
from collections.abc import Iterator, Sequence
from typing import Any, NoReturn

from strobe.errors import UsageError
from strobe.messages import localized, message, texts_of, users_language

_MOST_COLUMNS = 100
_HELP_COLUMN = 28
_MEANING_COLUMN = 40
_EXAMPLE = re.compile(r"(  \S.*?)\s{3,}(\S.*)")


class Formatter(argparse.RawDescriptionHelpFormatter):
    """Help as wide as the terminal, up to a width that is still easy to read."""

    def __init__(self, prog: str, **options: Any) -> None:
        import shutil  # only help needs it, and it takes milliseconds to import

        columns = min(shutil.get_terminal_size().columns, _MOST_COLUMNS)
        options = {"max_help_position": _HELP_COLUMN, "width": columns - 2, **options}
        super().__init__(prog, **options)

    def _format_usage(
        self, usage: str | None, actions: Any, groups: Any, prefix: str | None
    ) -> str:  # fmt: skip
        positionals = [action for action in actions if not action.option_strings]
        required = [action for action in actions if action.option_strings and action.required]
        words = [self._prog, localized("cli/parser.options")]
        words += [f"{action.option_strings[0]} {action.metavar}" for action in required]
        words += [_positional(action) for action in positionals]
        return localized("cli/parser.usage", words=" ".join(words)) + "\n\n"

    def _format_action_invocation(self, action: argparse.Action) -> str:
        if not action.option_strings:
            return super()._format_action_invocation(action)
        value = f" {_metavar(action)}" if action.nargs != 0 else ""
        return ", ".join(action.option_strings) + value

    def _expand_help(self, action: argparse.Action) -> str:
        return action.help or ""  # a percent sign is only a percent sign

    def _split_lines(self, text: str, width: int) -> list[str]:
        return _wrapped(text, width, "")

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        return about_text(text, width)


class Parser(argparse.ArgumentParser):
    """Mistakes are raised, so that they are reported like any other error."""

    def __init__(self, *args: Any, **options: Any) -> None:
        options = {"formatter_class": Formatter, "allow_abbrev": False, **options}
        with _argparse_in_users_language():
            super().__init__(*args, **options)

    def parse_args(self, args: Any = None, namespace: Any = None) -> Any:
        with _argparse_in_users_language():
            parsed, unknown = self.parse_known_args(args, namespace)
        if unknown:
            raise self._unknown(unknown)
        return parsed

    def error(self, message: str) -> NoReturn:
        raise UsageError(message, hint=self._see_help())

    def _unknown(self, words: Sequence[str]) -> UsageError:
        import difflib

        name = words[0].split("=")[0]
        near = difflib.get_close_matches(name, self._option_string_actions, 1)
        hint = self._see_help()
        if name.startswith("--") and near:
            hint = message("cli/parser.did-you-mean", name=near[0], program=self.prog)
        return UsageError.of("cli/parser.unknown", words=" ".join(words), hint=hint)

    def _see_help(self) -> str:
        return message("cli/parser.see-help", program=self.prog)


def about_text(text: str, width: int) -> str:
    """What a command does: paragraphs, and lines of examples with their meaning in a column."""
    lines: list[str] = []
    for line in text.splitlines():
        example = _EXAMPLE.fullmatch(line)
        if example is None:
            lines += [line] if line.startswith("  ") else _wrapped(line, width, "") or [""]
            continue
        command, meaning = example[1], _wrapped(example[2], width, " " * _MEANING_COLUMN)
        if len(command) < _MEANING_COLUMN - 1:
            meaning[0] = command + meaning[0][len(command) :]
        else:
            lines.append(command)
        lines += meaning
    return "\n".join(lines)


def _wrapped(text: str, width: int, indent: str) -> list[str]:
    if text.isascii():
        import textwrap

        return textwrap.wrap(text, width, initial_indent=indent, subsequent_indent=indent,
                             break_on_hyphens=False)  # fmt: skip
    from strobe.show.text.wrapping import wrapped  # knows that some characters are wide

    return wrapped(text, width, indent)


def with_default(text: str, value: object) -> str:
    """The help of an option, followed by its default."""
    return localized("cli/parser.default", text=text, value=str(value))


@contextlib.contextmanager
def _argparse_in_users_language() -> Iterator[None]:
    """argparse takes its own texts from a function of its module; the catalogue has them, too."""
    module: Any = argparse
    before = module._
    language = users_language()

    def text(english: str) -> str:
        texts = texts_of("cli/argparse").get(english)
        return texts[language] if texts else str(before(english))

    module._ = text
    try:
        yield
    finally:
        module._ = before


def _metavar(action: argparse.Action) -> str:
    if action.metavar is None and action.choices is not None:
        return "{" + ",".join(map(str, action.choices)) + "}"
    return str(action.metavar or action.dest.upper())


def _positional(action: argparse.Action) -> str:
    name = _metavar(action)
    forms = {"?": f"[{name}]", "*": f"[{name} ...]", "+": f"{name} [{name} ...]"}
    return forms.get(str(action.nargs), name)
