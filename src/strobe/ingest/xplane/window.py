"""A window of a recording made here: what XLA's own profiler gave. Its steps are the journal's."""

from pathlib import Path
from typing import Any

from strobe.errors import UnreadableTrace
from strobe.ingest import chosen
from strobe.ingest import spans as spans_of
from strobe.ingest.problems import Problems
from strobe.ingest.sources import Source
from strobe.ingest.spans import Vocabulary
from strobe.ingest.trace import Trace
from strobe.ingest.windows import Window
from strobe.ingest.xplane import reader


def read(
    path: Path, number: int, started_unix_ns: int, words: Vocabulary, said: Problems,
    options: dict[str, Any],
) -> Window:  # fmt: skip
    """A window in run time, its texts entered into the rank's vocabulary."""
    try:
        trace = reader.read(Source(reader.NAME, [str(path)], number), words)
    except UnreadableTrace as error:
        # The last piece of a window may be so short that nothing ran in it.
        if not error.what.endswith(reader.NO_EVENTS):
            said.add(path.name, f"this window cannot be read: {error.what}")
        trace = Trace(words)
    said.update(trace.said)
    trace.shift(-started_unix_ns)
    return Window(
        number,
        chosen.spans(spans_of.joined(list(trace.spans)), options, words),
        trace.memory,
        list(trace.counters),
        trace.queues,
        trace.flows,
    )
