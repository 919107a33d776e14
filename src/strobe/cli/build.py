"""Bring the tables of a run up to date without showing anything."""

import argparse
from pathlib import Path


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run", metavar="RUN", type=Path, help="folder of the run")


def run(args: argparse.Namespace) -> int:
    from strobe.ingest.opening import open_run_dir

    open_run_dir(args.run).close()
    return 0
