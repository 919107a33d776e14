"""trackio's projects: an SQLite database for each, `PROJECT.db`, with media files beside it.

Read are metrics (numbers, histograms, images, tables, texts, other media as bytes), the metrics of
the machine, and settings as hyperparameters. Runs are opened by name or ID, `PROJECT.db/RUN`. In
databases of older versions runs have no ID.

Left out are traces of language models, alerts, artifacts, and what waits in an inbox of JSON lines.
"""

from pathlib import Path

from strobe.ingest.formats.trackers import database
from strobe.ingest.importing.sources import Found, Peek, Source
from strobe.ingest.trace.spans import Vocabulary
from strobe.ingest.trace.trace import Trace

NAME = "trackio"
_ENDING = ".db"


def claim(folder: Path) -> list[Found]:
    from strobe.ingest.formats.trackers import store_runs
    from strobe.ingest.formats.trackio import project

    return [*store_runs.of_files(folder, (_ENDING,), project.found)]


def recognise(peek: Peek) -> Found | None:
    from strobe.ingest.formats.trackio import project

    return project.found(peek.path) if peek.head.startswith(database.MAGIC) else None


def read(source: Source, words: Vocabulary) -> Trace:
    from strobe.ingest.formats.trackio import project

    return project.read(source.path, source.run, words)
