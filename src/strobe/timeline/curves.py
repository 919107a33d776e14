"""Values over time beside the events: counters, lengths of queues, bytes allocated."""

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from strobe.analyse.tables.memory.memory import LIVE
from strobe.errors import UsageError
from strobe.model.schema import WORKERS
from strobe.timeline.rows import Array

if TYPE_CHECKING:
    from strobe.timeline.index import Index

# No screen is wider.
_MOST_BUCKETS = 16_384

# rank, ts_ns, name, value. A count that only grows is shown as its growth per second.
CURVES = f"""
    SELECT * FROM (
        SELECT rank, ts_ns, name, value FROM counters
        WHERE NOT ends_with(name, '_total') AND NOT contains(name, '{WORKERS}')
        UNION ALL
        SELECT rank, ts_ns, name || ' per second', 1e9 * growth / span_ns FROM (
            SELECT rank, ts_ns, replace(name, '_total', '') AS name,
                   value - lag(value) OVER w AS growth, ts_ns - lag(ts_ns) OVER w AS span_ns
            FROM counters WHERE ends_with(name, '_total')
            WINDOW w AS (PARTITION BY rank, name ORDER BY ts_ns)
        ) WHERE span_ns > 0
        UNION ALL
        SELECT rank, ts_ns, 'queue ' || name, length FROM queues
        UNION ALL
        SELECT rank, ts_ns, 'allocated bytes ' || device, live_bytes FROM ({LIVE})
    )
    WHERE isfinite(value)
"""


class Curve(NamedTuple):
    """Lowest and highest value in each bucket of time that has one; the last value before it."""

    before: float | None
    bucket: Array
    low: Array
    high: Array
    last: Array


def curve(index: "Index", number: int, t0_ns: int, t1_ns: int, buckets: int) -> Curve:
    """A curve between two moments, summed up for a picture of so many pixels."""
    if not 0 <= number < len(index.about["curves"]):
        raise UsageError.of("errors/pages.no-curve", count=len(index.about["curves"]))
    if not 0 < buckets <= _MOST_BUCKETS or t1_ns <= t0_ns:
        raise UsageError.of("errors/pages.bad-curve-range", most=_MOST_BUCKETS)
    first, last = (int(end) for end in index.arrays["curve_at"][number : number + 2])
    moments = index.arrays["curve_ns"][first:last]
    values = index.arrays["curve_value"][first:last]
    begin, end = (int(place) for place in np.searchsorted(moments, [t0_ns, t1_ns]))
    before = float(values[begin - 1]) if begin else None
    if begin == end:
        none = np.zeros(0)
        return Curve(before, none.astype(np.uint16), none, none, none)
    share = (moments[begin:end] - t0_ns).astype(np.float64) / (t1_ns - t0_ns)
    bucket = (share * buckets).astype(np.int64)
    at = np.flatnonzero(np.append(True, np.diff(bucket) != 0))
    seen = values[begin:end]
    ends = np.append(at[1:], len(seen)) - 1
    return Curve(
        before,
        bucket[at].astype(np.uint16),
        np.minimum.reduceat(seen, at),
        np.maximum.reduceat(seen, at),
        seen[ends],
    )
