"""What the commands that read a run share: opening it, and the options of how to print."""

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from strobe.cli.progress_line import ProgressLine
from strobe.messages import localized

if TYPE_CHECKING:
    from strobe.reading import OpenedRun
    from strobe.show.text.paper import Paper


def open_run(path: str) -> "OpenedRun":
    """`strobe.open_run`, with its progress on the terminal."""
    from strobe.cli.commands.import_ import Bar
    from strobe.ingest.building.opening import open_run_dir
    from strobe.ingest.importing.imported_run import run_of
    from strobe.reading import OpenedRun

    with Bar(place=path if Path(path).is_dir() else "") as bar:
        folder = run_of(Path(path), bar)
    with ProgressLine(localized("cli/parser.reading")):
        return OpenedRun(open_run_dir(folder))


def add_output_arguments(parser: argparse.ArgumentParser) -> None:
    how = parser.add_mutually_exclusive_group()
    how.add_argument("--json", action="store_true", help=localized("cli/parser.json-ns"))
    how.add_argument("--csv", action="store_true", help=localized("cli/parser.csv-ns"))
    add_width(parser)


def add_width(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--width", type=whole_number, metavar="N", help=localized("cli/parser.width")
    )


def paper(args: argparse.Namespace) -> "Paper":
    from strobe.show.text.paper import Paper

    return Paper(sys.stdout, args.width)


def whole_number(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(localized("cli/parser.not-a-number", text=repr(text)))
    return int(text)


def time(text: str) -> int:
    from strobe.units import parse_duration

    try:
        return parse_duration(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error
