"""Stores with many runs, read run by run."""

from pathlib import Path

from strobe.ingest.formats.registry import READERS
from strobe.ingest.importing.sources import Found, peek
from tests.ingest.metrics import Read


def runs(path: Path, reader: str) -> dict[str, Found]:
    """The runs of a folder or file, by name."""
    module = READERS.named(reader)
    if path.is_dir():
        found = module.claim(path)
    else:
        whole = module.recognise(peek(path))
        found = whole.runs if whole else ()
    return {each.run_name: each for each in found}


def only(path: Path, reader: str, folder: Path | None = None) -> Read:
    (found,) = runs(path, reader).values()
    return Read(reader, found, folder)
