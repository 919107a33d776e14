"""The flags of `strobe run`, made from the declaration of the options."""

import argparse
from collections.abc import Mapping
from typing import Any

from strobe.model.options import CLI, OPTIONS


def add_option_flags(parser: argparse.ArgumentParser) -> None:
    for name, option in OPTIONS.items():
        meta = option.metadata
        if CLI not in meta["ways"]:
            continue
        flag = f"--{name.replace('_', '-')}"
        if meta["kind"] != "bool":
            parser.add_argument(flag, metavar=meta["metavar"] or None, help=_help(option))
        elif option.default:
            parser.add_argument(
                f"--no-{name.replace('_', '-')}", *filter(None, [meta["flag"]]), flag, dest=name,
                action=_OnOff, nargs=0, help=f"not: {_help(option)}",
            )  # fmt: skip
        else:
            parser.add_argument(
                flag, f"--no-{name.replace('_', '-')}", dest=name, action=_OnOff, nargs=0,
                help=_help(option),
            )  # fmt: skip


def given_options(args: argparse.Namespace) -> dict[str, Any]:
    """Those that stand on the command line."""
    said = {name: value for name in OPTIONS if (value := getattr(args, name, None)) is not None}
    return {name: _value(value, OPTIONS[name].metadata) for name, value in said.items()}


class _OnOff(argparse.Action):
    """`--with-stack` and `--no-with-stack`; nothing said leaves it to the other ways."""

    def __call__(
        self, parser: argparse.ArgumentParser, namespace: argparse.Namespace, values: Any,
        option_string: str | None = None,
    ) -> None:  # fmt: skip
        setattr(namespace, self.dest, not str(option_string).startswith("--no-"))


def _help(option: Any) -> str:
    text = option.metadata["doc"].rstrip(".").replace("%", "%%")
    default = option.default
    if option.metadata["kind"] == "bool" or default in (None, ()):
        return f"{text[0].lower()}{text[1:]}"
    return f"{text[0].lower()}{text[1:]} (default {default})"


def _value(text: Any, meta: Mapping[str, Any]) -> Any:
    """A word of the command line as JSON would have it."""
    if not isinstance(text, str):
        return text
    if text in ("null", "none") and None in meta["choices"]:
        return None
    is_number = text.lstrip("-").isdecimal() and meta["kind"] in ("int", "choice")
    return int(text) if is_number else text
