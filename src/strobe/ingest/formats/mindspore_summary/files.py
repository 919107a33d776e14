"""The files of one summary folder, in order: values, then lineage, then exported tensors."""

from pathlib import Path

import numpy as np

from strobe.errors import UnreadableTrace
from strobe.ingest.formats.event_files.attempts import Attempts
from strobe.ingest.formats.event_files.events import Events, events
from strobe.ingest.formats.event_files.records import pieces
from strobe.ingest.formats.event_files.tensor_rows import add_bytes, add_tensor
from strobe.ingest.formats.event_files.value_rows import Batch
from strobe.ingest.formats.mindspore_summary import lineage
from strobe.ingest.formats.mindspore_summary.values import SOURCE, Values
from strobe.ingest.formats.xplane.wire import BYTES
from strobe.ingest.trace.metric_rows import UNKNOWN, Metrics
from strobe.ingest.trace.problems import Problems

_GRAPH, _EXPLAIN = 4, 6
GRAPH_PLUGIN = "mindspore_graph"


class Folder:
    def __init__(self, metrics: Metrics, folder: Path, said: Problems) -> None:
        self._metrics, self._said = metrics, said
        self._attempts = Attempts()
        self._file = folder.name
        self._values = Values(metrics, self._say, folder)
        self._facts: set[tuple[object, ...]] = set()

    def take(self, path: Path) -> None:
        """One file that cannot be read does not hide the others."""
        self._file = path.name
        try:
            if path.name.endswith("_lineage"):
                self._take_lineage(path)
            else:
                self._take_values(path)
        except UnreadableTrace as error:
            self._say(error.what, 1)

    def finish(self) -> None:
        """Exported tensors that no event has."""
        exported = self._values.exported
        for tag, step, array in exported.rest():
            add_tensor(
                self._metrics, array, tag=tag, step=step, ts_ns=UNKNOWN, source=SOURCE, attempt=1
            )
        if exported.unreadable:
            self._file = "export"
            self._say("exported tensors cannot be read", exported.unreadable)

    def _say(self, what: str, count: int) -> None:
        self._said.add(self._file, what, count)

    def _broken(self) -> None:
        self._say("messages that are damaged: what is before the damage was read", 1)

    def _take_values(self, path: Path) -> None:
        self._attempts.next_file()
        for piece in pieces(path, self._say):
            found = events(piece)
            if found.broken:
                self._say("messages that are damaged: what is before the damage was read",
                          found.broken)  # fmt: skip
            tag = self._values.codes(found)
            named = tag >= 0
            self._attempts.take(tag[named], found.step[found.values.owner][named])
            attempt = np.full(len(tag), self._attempts.number, dtype=np.int32)
            self._values.take(Batch(found, tag, attempt))
            self._take_others(found)

    def _take_others(self, found: Events) -> None:
        other = found.other
        self._say(
            "explanations of MindSpore XAI are not read", int((other.number == _EXPLAIN).sum())
        )
        for row in np.flatnonzero((other.number == _GRAPH) & (other.wire == BYTES)).tolist():
            event = int(other.owner[row])
            add_bytes(
                self._metrics, found.block.text(int(other.start[row]), int(other.end[row])),
                GRAPH_PLUGIN, tag="graph_def", step=int(found.step[event]), source=SOURCE,
                ts_ns=int(found.ts_ns[event]), attempt=self._attempts.number,
            )  # fmt: skip

    def _take_lineage(self, path: Path) -> None:
        for piece in pieces(path, self._say):
            for start, end in zip(piece.starts.tolist(), piece.ends.tolist(), strict=True):
                self._take_facts(piece.block.text(start, end))

    def _take_facts(self, event: bytes) -> None:
        """Each once: every evaluation writes what is known of the training again."""
        for table, row in lineage.rows(event, self._broken):
            key = (table, *row.values())
            if key not in self._facts:
                self._facts.add(key)
                self._metrics[table].add_row(**row, source=SOURCE)
