"""Any Chrome trace JSON, as the last resort: the Trace Event Format of chrome://tracing.

Read are complete spans (X), beginnings and ends (B, E), instants (i, I, R), counters (C), arrows
(s, t, f, and bind_id), asynchronous spans (b, n, e and the older S, T, p, F), names and order of
processes and threads (M). A list of events need not be closed, and times may be numbers or text.

Left out, and counted, are objects, samples, memory dumps and clock marks, and arguments but for
bytes, flops, stream and correlation. A process that is called after a device (GPU 0, /device:TPU:1)
is one; what else happens is the host's. Spec:
https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU
"""

import itertools
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from strobe.errors import UnreadableTrace
from strobe.ingest.formats import compressed
from strobe.ingest.formats.chrome import asynchronous
from strobe.ingest.formats.chrome import flows as chrome_flows
from strobe.ingest.formats.chrome import spans as chrome_spans
from strobe.ingest.formats.chrome.chunks import EventStream
from strobe.ingest.formats.chrome.events import Events, gathered
from strobe.ingest.formats.chrome.json_objects import event_kind
from strobe.ingest.importing.sources import Found, Peek, Source
from strobe.ingest.trace.codes import mapped
from strobe.ingest.trace.spans import Vocabulary
from strobe.ingest.trace.trace import Samples, Trace

NAME = "Chrome trace"

_OBJECT = re.compile(rb'\s*\{(?:.*?,)?\s*"traceEvents"\s*:\s*\[', re.DOTALL)
_LIST = re.compile(rb'\s*\[\s*\{.{0,4000}?"ph"\s*:\s*"', re.DOTALL)
_FIRST_TIME = re.compile(rb'"ts"\s*:\s*"?(\d{16})(?:\.(\d{1,3}))?')
_PEEK_BYTES = 64 << 10
# Microseconds since 1970 between 2001 and 2100: other clocks (boot, process) count far less.
_UNIX_NS = range(10**18, 4_102_444_800 * 10**9)


def claim(folder: Path) -> list[Found]:
    return []


def recognise(peek: Peek) -> Found | None:
    if not _OBJECT.match(peek.head) and not _LIST.match(peek.head):
        return None
    return Found((peek.path,), first_unix_ns=_first_unix_ns(peek.head))


def read(source: Source, words: Vocabulary) -> Trace:
    stream = EventStream(source.path, event_kind(compressed.beginning(source.path, _PEEK_BYTES)))
    events = gathered(stream, words)
    trace = Trace(words, stream.problems)
    where = chrome_spans.places(events, words)
    window, file, said = source.number, source.path.name, stream.problems
    spans = itertools.chain(
        chrome_spans.complete(events, where, words, window),
        chrome_spans.paired(events, where, words, window, file, said),
        chrome_spans.instants(events, where, window),
        asynchronous.spans(events, where, words, window, file, said),
    )
    if events.ends.rows:
        binder = chrome_flows.Binder(events.ends.rows, window, chrome_flows.File(file, said))
        for part in chrome_flows.passed_by(spans, events.ends, where.track):
            trace.spans.append(binder.take(part))
        trace.flows.append(binder.finish())
    else:
        trace.spans += spans
    trace.counters += _counters(events, words)
    if not trace.spans.rows and not trace.counters:
        raise UnreadableTrace.of("errors/traces.no-events", where=str(source.path))
    trace.is_unix = trace.first_ns() in _UNIX_NS
    return trace


def _first_unix_ns(head: bytes) -> int | None:
    times = [
        int(us) * 1000 + int((fraction or b"0").ljust(3, b"0"))
        for us, fraction in _FIRST_TIME.findall(head)
    ]
    first = min(times, default=0)
    return first if first in _UNIX_NS else None


def _counters(events: Events, words: Vocabulary) -> Iterator[Samples]:
    """A counter that several processes have is called after each of them."""
    shared = Counter(label for _, label in events.counter_names)
    names = []
    for pid, label in events.counter_names:
        process = events.named.processes.get(pid) or f"process {pid}"
        names.append(words.names[label if shared[label] == 1 else f"{label} ({process})"])
    for part in events.counters:
        yield part._replace(name=mapped(part.name, names))
    events.counters.clear()
