"""The flags of `strobe run`, made from the declaration of the options."""

import argparse
from collections.abc import Mapping
from typing import Any

from strobe.cli.parser import with_default
from strobe.messages import has_message, in_language, localized, users_language
from strobe.model.options import CLI, OPTIONS, doc

# The groups of `--help`; options that are in none of them are listed with the last.
_GROUPS = {
    "when": ("light", "steps", "every", "whole", "schedule", "ranks", "dynamic", "watch"),
    "window": (
        "profiler_level", "op_time", "record_shapes", "with_flops", "modules", "is_detail",
        "subgraph", "with_stack", "profile_memory", "sample_rate", "profile_device",
        "timeline_limit",
    ),
    "always": (
        "profile_communication", "parallel_strategy", "data_process", "metrics",
        "profile_framework",
        "hardware_metrics", "l2_cache", "sample_stacks", "sample_ms",
    ),
    "after": (),
}  # fmt: skip


def add_option_flags(parser: argparse.ArgumentParser) -> None:
    names = [name for name, option in OPTIONS.items() if CLI in option.metadata["ways"]]
    grouped = {name for members in _GROUPS.values() for name in members}
    for group, members in _GROUPS.items():
        flags = parser.add_argument_group(localized(f"options.group-{group}"))
        for name in members or [name for name in names if name not in grouped]:
            _add_flags(flags, name)


def _add_flags(parser: Any, name: str) -> None:
    option = OPTIONS[name]
    on, off = f"--{name.replace('_', '-')}", f"--no-{name.replace('_', '-')}"
    if option.metadata["kind"] != "bool":
        parser.add_argument(on, metavar=option.metadata["metavar"] or None, help=_help(name))
        return
    # Help lists only the flag that changes the default.
    changing, default = (off, on) if option.default else (on, off)
    short = filter(None, [option.metadata["flag"]])
    parser.add_argument(changing, *short, dest=name, action=_OnOff, nargs=0, help=_help(name))
    parser.add_argument(default, dest=name, action=_OnOff, nargs=0, help=argparse.SUPPRESS)


def given_options(args: argparse.Namespace) -> dict[str, Any]:
    """The options that are on the command line."""
    given = {name: value for name in OPTIONS if (value := getattr(args, name, None)) is not None}
    return {name: _value(value, OPTIONS[name].metadata) for name, value in given.items()}


class _OnOff(argparse.Action):
    """`--with-stack` and `--no-with-stack`; without either, the value comes from elsewhere."""

    def __call__(
        self, parser: argparse.ArgumentParser, namespace: argparse.Namespace, values: Any,
        option_string: str | None = None,
    ) -> None:  # fmt: skip
        setattr(namespace, self.dest, not str(option_string).startswith("--no-"))


def _help(name: str) -> str:
    default = OPTIONS[name].default
    text = _text(name)
    if OPTIONS[name].metadata["kind"] == "bool" or default in (None, ()):
        return text
    return with_default(text, default)


def _text(name: str) -> str:
    """The option as a verb phrase: its sentence, or the phrase of its flag."""
    if has_message(f"options.flag-{name}"):
        return localized(f"options.flag-{name}")
    text = in_language(doc(name), users_language()).rstrip(".。")
    return f"{text[0].lower()}{text[1:]}"


def _value(text: Any, meta: Mapping[str, Any]) -> Any:
    """A word of the command line as JSON would have it."""
    if not isinstance(text, str):
        return text
    if text in ("null", "none") and None in meta["choices"]:
        return None
    is_number = text.lstrip("-").isdecimal() and meta["kind"] in ("int", "choice")
    return int(text) if is_number else text
