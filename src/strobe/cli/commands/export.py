"""Export a run to a file that other tools read."""

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from strobe.cli.opening import open_run
from strobe.errors import StrobeError, UsageError
from strobe.messages import localized, message

if TYPE_CHECKING:
    from strobe.messages import Message
    from strobe.store.run import Run


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("run_dir", metavar="RUN", help=localized("cli/parser.run"))
    add("--format", required=True, metavar="FORMAT", help=localized("cli/export.format"))
    add("-o", "--output", metavar="FILE", help=localized("cli/export.output"))
    add("--force", action="store_true", help=localized("cli/export.force"))
    add("--json", action="store_true", help=localized("cli/parser.json"))


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
        print(localized("cli/export.wrote", path=path))
        _print_notes(notes)
    return 0


def _print_notes(notes: "list[Message]") -> None:
    """What a format could not hold."""
    from strobe.messages import in_language, users_language

    for note in notes:
        print(f"note: {in_language(note, users_language())}", file=sys.stderr)


def write_formats(run: "Run") -> None:
    """The files that the options of a recording requested, in the folder of the run.

    If one cannot be written, the others still are.
    """
    from strobe.show.formats import FORMATS

    wanted, wrong = run.manifest.options.get("formats") or (), None
    for chosen in FORMATS:
        if chosen.NAME in wanted:
            path = run.path / (chosen.NAME if "." in chosen.NAME else f"export.{chosen.NAME}")
            try:
                _print_notes(chosen.write(run, path) or [])
            except StrobeError as error:
                wrong = wrong or StrobeError.of("cli/export.not-written", name=chosen.NAME,
                                                reason=error.what)  # fmt: skip
    if wrong is not None:
        raise wrong


def _default_name(run_dir: str, name: str) -> str:
    stem = Path(run_dir).resolve().name
    return f"{stem}.csv" if name == "csv" else f"{stem}.{name}"


def _refuse_existing(path: Path, force: bool, is_part: Callable[[Path], bool] | None) -> None:
    if not path.exists():
        return
    if not force:
        raise UsageError.of("cli/export.exists", where=str(path))
    # --force may replace an export, but never delete a folder with other files.
    is_export = is_part is not None and path.is_dir() and all(map(is_part, path.iterdir()))
    if path.is_dir() and not is_export:
        raise UsageError.of("cli/export.other-files", where=str(path))


def _unknown(name: str, known: list[str]) -> UsageError:
    import difflib

    near = difflib.get_close_matches(name, known, 1, cutoff=0.4)
    names = ", ".join(known)
    hint = message("cli/export.did-you-mean", near=near[0], names=names) if near else ""
    return UsageError.of("cli/export.unknown", name=name, names=names, hint=hint)
