"""Write a run as a file that other tools read.

strobe export RUN --format chrome_timeline.json -o timeline.json.gz
"""

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from strobe.cli.opening import open_run
from strobe.errors import StrobeError, UsageError

if TYPE_CHECKING:
    from strobe.messages import Message
    from strobe.store.run import Run


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run_dir", metavar="RUN", help="folder of a recorded run")
    parser.add_argument("--format", required=True, metavar="F", help="`list` lists them")
    parser.add_argument("-o", "--output", metavar="FILE", help="where to; .gz compresses")
    parser.add_argument("--force", action="store_true", help="write over what is there")
    parser.add_argument("--json", action="store_true", help="say what was written as JSON")


def run(args: argparse.Namespace) -> int:
    import json

    from strobe.show.formats import FOLDERS, FORMATS

    if args.format == "list":
        for known in FORMATS:
            print(f"{known.NAME:<22} {known.DOC}")
        return 0
    chosen = next((known for known in FORMATS if args.format == known.NAME), None)
    if chosen is None:
        raise _unknown(args.format, [known.NAME for known in FORMATS])
    path = Path(args.output or _default_name(args.run_dir, chosen.NAME))
    _refuse_existing(path, args.force, FOLDERS.get(chosen.NAME))
    with open_run(args.run_dir) as opened:
        notes = chosen.write(opened.run, path) or []
    if args.json:
        written = {"ok": True, "format": chosen.NAME, "path": str(path), "notes": notes}
        print(json.dumps(written))
    else:
        print(f"wrote {path}")
        _print_notes(notes)
    return 0


def _print_notes(notes: "list[Message]") -> None:
    """What a format could not hold."""
    from strobe.messages import in_language, users_language

    for note in notes:
        print(f"note: {in_language(note, users_language())}", file=sys.stderr)


def write_formats(run: "Run") -> None:
    """The files that the options of a recording asked for, beside its ranks.

    One that cannot be written is no reason to leave out the others.
    """
    from strobe.show.formats import FORMATS

    wanted, wrong = run.manifest.options.get("formats") or (), None
    for chosen in FORMATS:
        if chosen.NAME in wanted:
            path = run.path / (chosen.NAME if "." in chosen.NAME else f"export.{chosen.NAME}")
            try:
                _print_notes(chosen.write(run, path) or [])
            except StrobeError as error:
                wrong = wrong or StrobeError(f"{chosen.NAME} was not written: {error.what}")
    if wrong is not None:
        raise wrong


def _default_name(run_dir: str, name: str) -> str:
    stem = Path(run_dir).resolve().name
    return f"{stem}.csv" if name == "csv" else f"{stem}.{name}"


def _refuse_existing(path: Path, force: bool, is_part: Callable[[Path], bool] | None) -> None:
    if not path.exists():
        return
    if not force:
        raise UsageError(
            "it exists already", where=str(path), hint="add --force, or choose another with -o"
        )
    # --force is leave to replace an export, never to delete somebody's folder.
    is_export = is_part is not None and path.is_dir() and all(map(is_part, path.iterdir()))
    if path.is_dir() and not is_export:
        raise UsageError(
            "this is a folder with other things in it",
            where=str(path),
            hint="choose another place with -o",
        )


def _unknown(name: str, known: list[str]) -> UsageError:
    import difflib

    near = difflib.get_close_matches(name, known, 1, cutoff=0.4)
    suggestion = f"did you mean {near[0]}; " if near else ""
    return UsageError(f"no format named {name!r}", hint=f"{suggestion}formats: {', '.join(known)}")
