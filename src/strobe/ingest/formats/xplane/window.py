"""A window of a recording made here: what XLA's own profiler gave. Its steps are the journal's."""

from pathlib import Path
from typing import Any

from strobe.errors import UnreadableTrace
from strobe.ingest.formats.xplane import reader
from strobe.ingest.importing.sources import Source
from strobe.ingest.recording import option_filter
from strobe.ingest.recording.windows import Window
from strobe.ingest.trace import spans as spans_of
from strobe.ingest.trace.problems import Problems
from strobe.ingest.trace.spans import Vocabulary
from strobe.ingest.trace.trace import Trace


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
        option_filter.spans(spans_of.joined(list(trace.spans)), options, words),
        trace.memory,
        list(trace.counters),
        trace.queues,
        trace.flows,
    )
