"""Bring the tables of a run up to date without showing anything.

Files that were asked for with the option `formats` are written into the run.
"""

import argparse
import contextlib
import os
from pathlib import Path


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run", metavar="RUN", type=Path, help="folder of the run")
    parser.add_argument(
        "--gently", action="store_true", help="only when nobody else wants the processor"
    )


def run(args: argparse.Namespace) -> int:
    from strobe.cli.commands.export import write_formats
    from strobe.ingest.building.opening import open_run_dir

    if args.gently:
        _give_way()
    with contextlib.closing(open_run_dir(args.run)) as opened:
        write_formats(opened)
    return 0


def _give_way() -> None:
    os.nice(19)
    with contextlib.suppress(OSError, AttributeError):
        os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
