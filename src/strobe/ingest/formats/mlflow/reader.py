"""MLflow's runs, of a folder of files (`mlruns`) and of an SQLite database (`mlflow.db`).

Read are metrics, parameters as hyperparameters, tags and the facts about a run as lineage, and the
images of `log_image(key=..., step=...)`. In a folder each run is a folder, `EXPERIMENT/RUN`; runs
of a database are opened by name or ID, `mlflow.db/RUN`. Deleted runs are not listed.

Left out are other artifacts, models, datasets and traces.
"""

from pathlib import Path

from strobe.ingest.formats.trackers import database
from strobe.ingest.importing.sources import Found, Peek, Source, files_below
from strobe.ingest.trace.spans import Vocabulary
from strobe.ingest.trace.trace import Trace

NAME = "MLflow"
_ENDINGS = (".db", ".sqlite", ".sqlite3")


def claim(folder: Path) -> list[Found]:
    from strobe.ingest.formats.mlflow import run_database, run_folder
    from strobe.ingest.formats.trackers import store_runs

    metas = (path for path in files_below(folder) if path.name == run_folder.META)
    in_folders = [run for meta in metas for run in run_folder.runs(meta)]
    return [*store_runs.of_files(folder, _ENDINGS, run_database.found), *in_folders]


def recognise(peek: Peek) -> Found | None:
    from strobe.ingest.formats.mlflow import run_database

    return run_database.found(peek.path) if peek.head.startswith(database.MAGIC) else None


def read(source: Source, words: Vocabulary) -> Trace:
    from strobe.ingest.formats.mlflow import run_database, run_folder

    if source.run:
        return run_database.read(source.path, source.run, words)
    return run_folder.read(source.path.parent, words)
