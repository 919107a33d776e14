"""MindSpore's summaries: the `_MS` and `_lineage` files of SummaryCollector and SummaryRecord.

Read are scalars, histograms, images, tensors (with the exact values of exported npy files), loss
landscapes as tensors, graphs as bytes, and the lineage of training, evaluation and dataset. A
folder is a run; folders rank_0, rank_1, ... are ranks of one.

Left out are explanations of MindSpore XAI, which are counted.
"""

from pathlib import Path

from strobe.ingest.formats.mindspore_summary import summary_folders
from strobe.ingest.importing.sources import Found, Peek, Source
from strobe.ingest.trace.spans import Vocabulary
from strobe.ingest.trace.trace import Trace

NAME = "MindSpore summary"


def claim(folder: Path) -> list[Found]:
    return summary_folders.runs(folder)


def recognise(peek: Peek) -> Found | None:
    return summary_folders.alone(peek.path)


def read(source: Source, words: Vocabulary) -> Trace:
    from strobe.ingest.formats.mindspore_summary.files import Folder

    trace = Trace(words, is_unix=True)
    paths = [Path(path) for path in source.paths]
    for place in sorted({path.parent for path in paths}):
        folder = Folder(trace.metrics, place, trace.said)
        for path in sorted(path for path in paths if path.parent == place):
            folder.take(path)
        folder.finish()
    return trace
