"""What the commands that read a run share: opening it, and saying how to print."""

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from strobe.errors import UsageError

if TYPE_CHECKING:
    from strobe.analyse.opened import OpenedRun
    from strobe.show.paper import Paper


def open_run(path: str) -> "OpenedRun":
    from strobe.analyse.opened import OpenedRun
    from strobe.ingest import open_run_dir

    folder = Path(path)
    if not folder.exists():
        raise UsageError(
            "there is no such run",
            where=path,
            hint="give the folder that strobe run wrote (its -o RUN); to record one: "
            "strobe run -o RUN train.py",
        )
    return OpenedRun(open_run_dir(folder))


def add_output_arguments(parser: argparse.ArgumentParser) -> None:
    how = parser.add_mutually_exclusive_group()
    how.add_argument("--json", action="store_true", help="as JSON, times in nanoseconds")
    how.add_argument("--csv", action="store_true", help="as CSV, times in nanoseconds")
    parser.add_argument(
        "--width", type=whole_number, metavar="N", help="columns to fill; the terminal's own"
    )


def paper(args: argparse.Namespace) -> "Paper":
    from strobe.show.paper import Paper

    return Paper(sys.stdout, args.width)


def whole_number(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number")
    return int(text)


def time(text: str) -> int:
    from strobe.units import parse_duration

    try:
        return parse_duration(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error
