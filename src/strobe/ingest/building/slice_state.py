"""State that a slice of time passes to the next: everything that a later event may refer to."""

import numpy as np

from strobe.ingest.building.event_links import Links
from strobe.ingest.formats.kinds import KIND
from strobe.ingest.trace.codes import Array
from strobe.ingest.trace.spans import Spans

# Calls and operators are matched within moments or never: only the last of those still waiting are
# kept, so that the state stays bounded.
_CALLS = 100_000
_FORWARD = 200_000


def carried(spans: Spans, links: Links, ids: Array, until_ns: int, *, has_device: bool) -> Spans:
    keep = spans.ts_ns + spans.dur_ns > until_ns
    if has_device:
        keep |= _last(_waiting_calls(spans, links), _CALLS)
    keep |= _last(_waiting_forward(spans), _FORWARD)
    rows = np.flatnonzero(keep)
    rest = spans.take(rows)
    rest.args["id"] = ids[rows]
    # Their enclosing events are not carried over, so they carry what they inherited from them.
    rest.args["scope"] = links.scope[rows]
    rest.args["backward"] = np.where(links.is_backward[rows], 1, -1)
    return rest


def _waiting_calls(spans: Spans, links: Links) -> Array:
    is_call = np.isin(spans.kind, (KIND["runtime"], KIND["sync"])) & (spans.arg("correlation") > 0)
    is_operator = (spans.kind == KIND["op"]) & (spans.arg("external") > 0)
    waiting: Array = is_call | is_operator
    waiting[links.launcher[links.launcher >= 0]] = False
    return waiting


def _waiting_forward(spans: Spans) -> Array:
    sequence = spans.arg("sequence")
    is_forward = (sequence >= 0) & (spans.arg("forward_thread") <= 0)
    answered = sequence[(sequence >= 0) & (spans.arg("forward_thread") > 0)]
    waiting: Array = is_forward & ~np.isin(sequence, answered)
    return waiting


def _last(chosen: Array, count: int) -> Array:
    rows = np.flatnonzero(chosen)
    if len(rows) > count:
        chosen[rows[:-count]] = False
    return chosen
