"""What MindData's profiler told of the pipelines that a training here took its batches from.

Its moments are those of the clock that marks have. Queues and counters are named by the loader.
"""

from pathlib import Path
from typing import NamedTuple

import numpy as np

from strobe.ingest.formats.mindspore import data as mindspore_data
from strobe.ingest.formats.mindspore.files import by_kind
from strobe.ingest.recording.journal_reader import Journal
from strobe.ingest.trace.problems import Problems
from strobe.ingest.trace.spans import Vocabulary
from strobe.ingest.trace.trace import Samples, Trace


class Pipelines(NamedTuple):
    queues: list[Samples]
    counters: list[Samples]


def read(
    raw: Path, marks: Journal, started_unix_ns: int, words: Vocabulary, said: Problems
) -> Pipelines:
    found = Pipelines([], [])
    for fact in marks.facts:
        if fact["type"] != "minddata" or not isinstance(fact.get("folder"), str):
            continue
        folder = raw / Path(fact["folder"]).name
        if not folder.is_dir():
            said.add(folder.name, "what MindData told of its queues is missing")
            continue
        trace = Trace(said=said)
        paths = sorted(folder.iterdir())
        mindspore_data.read(by_kind(paths), paths, trace)
        prefix = f"loader {fact.get('loader')}"
        for into, parts in ((found.queues, trace.queues), (found.counters, trace.counters)):
            names = [words.names[_named(name, prefix)] for name in trace.words.names]
            into += [
                part._replace(
                    ts_ns=marks.to_run_time(part.ts_ns, started_unix_ns),
                    name=np.array(names)[part.name],
                )
                for part in parts
            ]
    return found


def _named(name: str, prefix: str) -> str:
    """`loader 1 MapOp_3 to loader 1 BatchOp_1`."""
    source, joint, target = name.partition(" to ")
    if not joint:
        return f"{prefix} {name}"
    return f"{prefix} {source} to {target if target == 'training' else f'{prefix} {target}'}"
