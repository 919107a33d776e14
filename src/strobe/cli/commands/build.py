"""Build or update the tables of a run, without showing anything.

Files that were requested with the option `formats` are written into the run.
"""

import argparse
import contextlib
import os
from pathlib import Path

from strobe.messages import localized


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run", metavar="RUN", type=Path, help=localized("cli/build.run"))
    parser.add_argument("--gently", action="store_true", help=localized("cli/build.gently"))


def run(args: argparse.Namespace) -> int:
    from strobe.cli.commands.export import write_formats
    from strobe.ingest.building.opening import open_run_dir

    if args.gently:
        _lower_priority()
    with contextlib.closing(open_run_dir(args.run)) as opened:
        write_formats(opened)
    return 0


def _lower_priority() -> None:
    os.nice(19)
    with contextlib.suppress(OSError, AttributeError):
        os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
