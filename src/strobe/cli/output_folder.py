"""Where a new run goes: what the commands that make one share."""

import argparse
import re
import time
from pathlib import Path

from strobe.errors import UsageError
from strobe.model.manifest import MANIFEST_FILE

BASE_DIR = "strobe-runs"


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
    if args.output is None:
        name = re.sub(r"[^\w.-]+", "-", name)[:40]
        base = Path(BASE_DIR) / f"{name}-{time.strftime('%Y%m%d-%H%M%S')}"
        folder, number = base, 1
        while folder.exists():
            number += 1
            folder = base.with_name(f"{base.name}-{number}")
        return folder
    folder = Path(args.output)
    if folder.is_dir() and any(folder.iterdir()):
        is_run = (folder / MANIFEST_FILE).exists()
        if not (args.overwrite and is_run):
            raise UsageError(
                "this folder " + ("holds a run already" if is_run else "is not empty"),
                where=str(folder),
                hint="choose another folder with -o" + (", or --overwrite it" if is_run else ""),
            )
    elif folder.exists() and not folder.is_dir():
        raise UsageError("a file is in the way", where=str(folder), hint="choose another -o")
    return folder
