"""Flow events of a Chrome trace: which spans they join.

A flow event belongs to the span around it on its thread, the end of a flow without `bp: e` to the
next span that begins there. The steps of a flow are linked in order of time.
"""

import numpy as np

from strobe.ingest import allocations, nesting
from strobe.ingest.chrome.events import PHASE, Events
from strobe.ingest.codes import Array
from strobe.ingest.problems import Problems
from strobe.ingest.spans import Spans, Vocabulary
from strobe.ingest.trace import Flows

_START = PHASE["s"]


def flows(
    events: Events, spans: Spans, track_of: Array, bound_rows: Array,
    words: Vocabulary, window: int, file: str, said: Problems,
) -> Flows:  # fmt: skip
    """`spans` are all of the file in order of time; `bound_rows` are rows of them."""
    phase = events.column("phase")
    rows = np.flatnonzero(np.isin(phase, [PHASE[p] for p in "stf"]))
    ts_ns, key, phase = events.column("ts_ns")[rows], events.column("key")[rows], phase[rows]
    track = track_of[events.column("thread")[rows].astype(np.int64)]
    to_next = (phase == PHASE["f"]) & ~events.column("bp")[rows].astype(bool)
    span = _bound_spans(spans, track, ts_ns, to_next)
    bound = np.array(events.bound, dtype=np.int64).reshape(-1, 3)
    ts_ns = np.concatenate([ts_ns, spans.ts_ns[bound_rows]])
    key, phase = np.concatenate([key, bound[:, 1]]), np.concatenate([phase, bound[:, 2]])
    span = np.concatenate([span, bound_rows])
    lost = span < 0
    said.add(file, "an arrow begins or ends where there is no span and was left out", lost.sum())
    order = _in_order(key, ts_ns, phase == _START)
    order = order[~lost[order]]
    if not len(order):
        return Flows(order, order, order, window)
    # An end leads nowhere further: the next end of a flow comes from the same span as it.
    goes_on = np.where(phase[order] != PHASE["f"], np.arange(len(order)), -1)
    before = np.append(-1, np.maximum.accumulate(goes_on)[:-1])
    joins = (before >= 0) & (key[order[before]] == key[order]) & (phase[order] != _START)
    this, following = order[before[joins]], order[joins]
    alone = len(order) - len(np.union1d(this, following))
    said.add(file, "an arrow has one end only and was left out", alone)
    keys = list(events.keys)
    named = [words.texts[_kind(keys[number])] for number in key[this].tolist()]
    number = spans.arg("number")
    kind = np.array(named, dtype=np.int64)
    return Flows(number[span[this]], number[span[following]], kind, window)


def _in_order(key: Array, ts_ns: Array, starts: Array) -> Array:
    """By flow and time. The only start of a flow comes first even where clocks disagree."""
    count = np.bincount(key[starts], minlength=int(key.max(initial=0)) + 1)
    is_only = starts & (count[key] == 1)
    when = np.where(is_only, np.iinfo(np.int64).min, ts_ns)
    return np.lexsort((np.arange(len(key)), ~starts, when, key))


def _kind(key: tuple[str, ...]) -> str:
    return (key[1] or key[2] or "flow") if key[0] == "flow" else "flow"


def _bound_spans(spans: Spans, track: Array, ts_ns: Array, to_next: Array) -> Array:
    parent = nesting.parents(spans.track, spans.ts_ns, spans.dur_ns)
    around = allocations.containing(track, ts_ns, spans, parent)
    following = np.full(len(ts_ns), -1, dtype=np.int64)
    for number in np.unique(track[to_next]).tolist():
        rows = np.flatnonzero(spans.track == number)
        moments = np.flatnonzero(to_next & (track == number))
        place = np.searchsorted(spans.ts_ns[rows], ts_ns[moments], side="left")
        inside = place < len(rows)
        following[moments[inside]] = rows[place[inside]]
    return np.where(to_next & (following >= 0), following, around)
