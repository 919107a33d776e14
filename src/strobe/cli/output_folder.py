"""Where a new run goes: what the commands that make one share."""

import argparse
from pathlib import Path

from strobe.model.new_run import BASE_DIR, new_run_folder


def add_output_folder(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "-o",
        "--output",
        metavar="RUN",
        type=Path,
        help=f"folder of the run (default: a new one in {BASE_DIR}/)",
    )
    parser.add_argument("--overwrite", action="store_true", help="replace the run that is there")


def output_folder(args: argparse.Namespace, name: str) -> Path:
    """The folder asked for, or a new one that is called after what is recorded."""
    return new_run_folder(args.output, name, overwrite=args.overwrite)
