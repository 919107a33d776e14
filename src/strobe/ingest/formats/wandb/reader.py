"""W&B's offline runs: the `run-ID.wandb` files of `WANDB_MODE=offline`, with their media files.

Read are the history (numbers, histograms, images, tables, texts, other media as bytes), system
metrics, settings as hyperparameters, the summary and the facts about the run as lineage. A metric
that `define_metric` gives a step metric counts along that one, where its value is a whole number.
Each file is a run.

Left out are console output, artifacts, alerts and what W&B says of itself.
"""

from pathlib import Path

from strobe.errors import UnreadableTrace
from strobe.ingest.formats.wandb import log_records
from strobe.ingest.importing.sources import Found, Peek, Source, files_below
from strobe.ingest.trace.spans import Vocabulary
from strobe.ingest.trace.trace import Trace

NAME = "W&B"
_SUFFIX = ".wandb"
_FOLDERS = ("files", "logs", "tmp")  # beside the file
_LOGS = ("debug.log", "debug-internal.log")  # beside it, and in the folder of all runs


def claim(folder: Path) -> list[Found]:
    paths = [path for path in files_below(folder) if path.name.endswith(_SUFFIX)]
    paths = [path for path in paths if log_records.is_log(path)]
    parents = [path.parent for path in paths]
    return [
        _found(
            path, path.parent if parents.count(path.parent) == 1 else path, _beside(path, folder)
        )
        for path in paths
    ]


def recognise(peek: Peek) -> Found | None:
    return _found(peek.path) if peek.head.startswith(log_records.MAGIC) else None


def read(source: Source, words: Vocabulary) -> Trace:
    from strobe.ingest.formats.wandb import files

    trace = Trace(words, is_unix=True)
    path = source.path

    def say(what: str, count: int) -> None:
        trace.said.add(path.name, what, count)

    files.take(path, trace, say)
    return trace


def _found(path: Path, folder: Path | None = None, ignored: tuple[Path, ...] = ()) -> Found:
    from strobe.ingest.formats.wandb import files

    try:
        name, began = files.beginning(path)
    except UnreadableTrace:  # reported where it is read
        name, began = "", None
    return Found(
        (path,), rank=0, folder=folder, first_unix_ns=began, ignored=ignored, run_name=name
    )


def _beside(path: Path, root: Path) -> tuple[Path, ...]:
    """What W&B writes with a run: media are read with it, the rest is not needed."""
    places = [path.parent] if path.parent == root else [path.parent, path.parent.parent]
    logs = [place / name for place in places for name in _LOGS]
    inside = [file for name in _FOLDERS for file in files_below(path.parent / name)]
    return (*inside, *(log for log in logs if log.exists()))
