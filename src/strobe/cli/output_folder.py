"""The folder of a new run: what the commands that create one share."""

import argparse
from pathlib import Path

from strobe.messages import localized
from strobe.model.new_run import BASE_DIR, new_run_folder


def add_output_folder(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "-o",
        "--output",
        metavar="RUN",
        type=Path,
        help=localized("cli/run.output", base=BASE_DIR),
    )
    parser.add_argument("--overwrite", action="store_true", help=localized("cli/run.overwrite"))


def output_folder(args: argparse.Namespace, name: str) -> Path:
    """The folder asked for, or a new one that is called after what is recorded."""
    return new_run_folder(args.output, name, overwrite=args.overwrite)
