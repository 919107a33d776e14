"""TensorBoard's event files, as torch, TensorFlow and tensorboardX write them.

Read are scalars, histograms, images, text, tensors (PR curves, audio and meshes too, for what draws
them), hyperparameters of the hparams plugin, and graphs as bytes. A folder with event files is a
run; folders below it are parts of it, and their names come before the tags. A resumed run has
several attempts, of which nothing is left out.

Left out are embeddings (they are files of their own), log messages, and histograms in the form
before TensorFlow 1.
"""

from pathlib import Path

from strobe.ingest.formats.event_files import records
from strobe.ingest.formats.tensorboard import log_folders
from strobe.ingest.importing.sources import Found, Peek, Source
from strobe.ingest.trace.spans import Vocabulary
from strobe.ingest.trace.trace import Trace

NAME = "TensorBoard"
_EMBEDDINGS = log_folders.EMBEDDINGS


def claim(folder: Path) -> list[Found]:
    return log_folders.runs(folder)


def recognise(peek: Peek) -> Found | None:
    if not log_folders.is_event_file(peek.path):
        return None
    return Found((peek.path,), rank=0, first_unix_ns=records.began(peek.path))


def read(source: Source, words: Vocabulary) -> Trace:
    from strobe.ingest.formats.tensorboard.files import Folder

    trace = Trace(words, is_unix=True)
    folders: dict[Path, Folder] = {}
    for prefix, path in log_folders.with_prefixes(Path(path) for path in source.paths):
        if path.parent not in folders:
            folders[path.parent] = Folder(trace.metrics, prefix, trace.said)
        folders[path.parent].take(path)
    for folder in folders:
        if (folder / _EMBEDDINGS).exists():
            trace.said.add(_EMBEDDINGS, "embeddings are not read")
    return trace
