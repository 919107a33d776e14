"""Python functions that open a scope, in a trace with Python stacks.

A scope (an annotation or the call of a module) begins while the function that opens it is still
running, `__enter__` for example, and goes on after it. It lies around what follows, not inside
that function; so for nesting the function counts until the scope begins.
"""

import numpy as np

from strobe.ingest.building import nesting
from strobe.ingest.formats.kinds import KIND
from strobe.ingest.trace.codes import Array
from strobe.ingest.trace.spans import Spans


def parents(spans: Spans) -> Array:
    """As nesting.parents has it, with scopes around what they contain."""
    return nesting.parents(spans.track, spans.ts_ns, lengths(spans))


def lengths(spans: Spans) -> Array:
    """The length of every span, with such functions cut where the scope begins."""
    length = spans.dur_ns.copy()
    is_frame = spans.kind == KIND["python"]
    is_scope = np.isin(spans.kind, (KIND["annotation"], KIND["module"]))
    is_scope &= (spans.arg("on_device") <= 0) & np.isin(spans.track, spans.track[is_frame])
    rows = np.flatnonzero(is_frame | is_scope)
    if not is_scope.any():
        return length
    start, end = spans.ts_ns[rows], spans.ts_ns[rows] + length[rows]
    parent = nesting.parents(spans.track[rows], start, length[rows])
    scope = np.flatnonzero(is_scope[rows])
    around = parent[scope]
    while len(scope):
        outlasted = (around >= 0) & is_frame[rows[around]] & (end[around] < end[scope])
        # Only one that ends soon after: a long function may open a scope that somebody else closes.
        outlasted &= end[around] - start[scope] < end[scope] - end[around]
        scope, around = scope[outlasted], around[outlasted]
        np.minimum.at(end, around, start[scope])
        around = parent[around]
    length[rows] = end - start
    return length
