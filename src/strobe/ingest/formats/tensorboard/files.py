"""The event files of one folder, one after the other, and what their events are."""

from pathlib import Path

import numpy as np

from strobe.errors import UnreadableTrace
from strobe.ingest.formats.event_files.attempts import Attempts
from strobe.ingest.formats.event_files.events import Events, events
from strobe.ingest.formats.event_files.records import pieces
from strobe.ingest.formats.event_files.tensor_rows import add_bytes
from strobe.ingest.formats.event_files.value_rows import Batch
from strobe.ingest.formats.tensorboard.values import SOURCE, Values
from strobe.ingest.formats.xplane.wire import BYTES, fields
from strobe.ingest.trace.codes import Array
from strobe.ingest.trace.metric_rows import Metrics
from strobe.ingest.trace.problems import Problems

_GRAPH, _LOG_MESSAGE, _SESSION, _RUN_METADATA, _META_GRAPH = 4, 6, 7, 8, 9
_START = 1
_GRAPHS = {_GRAPH: "graph_def", _RUN_METADATA: "run_metadata", _META_GRAPH: "meta_graph_def"}


class Folder:
    def __init__(self, metrics: Metrics, prefix: str, said: Problems) -> None:
        self._metrics, self._prefix, self._said = metrics, prefix, said
        self._attempts = Attempts()
        self._file = ""
        self._values = Values(metrics, prefix, self._say)

    def take(self, path: Path) -> None:
        """One file that cannot be read does not hide the others."""
        self._file = path.name
        self._attempts.next_file()
        try:
            self._take(path)
        except UnreadableTrace as error:
            self._say(error.what, 1)

    def _take(self, path: Path) -> None:
        for piece in pieces(path, self._say):
            found = events(piece)
            if found.broken:
                self._say("messages that are damaged: what is before the damage was read",
                          found.broken)  # fmt: skip
            tag = self._values.codes(found)
            self._values.take(Batch(found, tag, self._attempts_of(found, tag)))
            self._take_graphs(found)

    def _say(self, what: str, count: int) -> None:
        self._said.add(self._file, what, count)

    def _attempts_of(self, found: Events, tag: Array) -> Array:
        """The attempt of each value: an event may start a session."""
        step = found.step[found.values.owner]
        attempt = np.full(len(tag), self._attempts.number, dtype=np.int32)
        done = 0
        for event in [*self._starts(found), len(found.step)]:
            until = int(found.values.owner.searchsorted(event))
            stretch = slice(done, until)
            named = tag[stretch] >= 0
            self._attempts.take(tag[stretch][named], step[stretch][named])
            attempt[stretch] = self._attempts.number
            if event < len(found.step):
                self._attempts.start(int(found.step[event]))
            done = until
        return attempt

    def _starts(self, found: Events) -> list[int]:
        """The events at which a session starts."""
        sessions = found.other.rows(found.other.number == _SESSION)
        return [
            owner
            for owner, start, end in zip(
                sessions.owner.tolist(), sessions.start.tolist(), sessions.end.tolist(), strict=True
            )
            if dict(fields(found.block.text(start, end), _ignored)).get(1) == _START
        ]

    def _take_graphs(self, found: Events) -> None:
        other = found.other
        for row in range(len(other)):
            plugin = _GRAPHS.get(int(other.number[row]))
            if plugin is None or other.wire[row] != BYTES:
                continue
            event = int(other.owner[row])
            add_bytes(
                self._metrics, found.block.text(int(other.start[row]), int(other.end[row])), plugin,
                tag=f"{self._prefix}{plugin}", step=int(found.step[event]), source=SOURCE,
                ts_ns=int(found.ts_ns[event]), attempt=self._attempts.number,
            )  # fmt: skip


def _ignored() -> None:
    """A session that is damaged starts nothing."""
