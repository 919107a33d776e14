"""The folder of a new run: what the commands that create one share."""

import argparse
import re
import time
from pathlib import Path

from strobe.errors import UsageError
from strobe.messages import localized
from strobe.model.manifest import MANIFEST_FILE

BASE_DIR = "strobe-runs"


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
    """The requested folder, or a new one named after what is recorded."""
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
            id = "cli/run.folder-has-run" if is_run else "cli/run.folder-not-empty"
            raise UsageError.of(id, where=str(folder))
    elif folder.exists() and not folder.is_dir():
        raise UsageError.of("cli/run.folder-is-file", where=str(folder))
    return folder
