"""Join what belongs together: event and step, module and operator, forward and backward, kernel."""

from dataclasses import dataclass

import numpy as np

from strobe.ingest.building.nesting import nearest
from strobe.ingest.formats.kinds import BACKWARD_NAMES, KIND
from strobe.ingest.trace.codes import Array, occurring
from strobe.ingest.trace.spans import Spans, Vocabulary

# Above the numbers that a file gives to its own calls, so that windows do not mix.
_WINDOW_SHIFT = 44
_NUMBER_MASK = (1 << _WINDOW_SHIFT) - 1


@dataclass
class Links:
    """For each span a row of the spans, or -1; for scope a number of the vocabulary's scopes."""

    launcher: Array
    forward: Array  # of a backward span: the operator whose gradient it computes
    is_backward: Array
    scope: Array


def links(spans: Spans, parent: Array, words: Vocabulary) -> Links:
    forward = _forward_of(spans)
    launcher = _launchers(spans)
    root = _has_backward_name(spans, words) | _is_backward_node(spans)
    is_backward = (nearest(root, parent) >= 0) | (spans.arg("backward") == 1)
    is_backward |= _on_backward_thread(spans)
    scope = _scopes(spans, parent, forward)
    launched = (launcher >= 0) & (spans.arg("scope") < 0)
    scope[launched] = scope[launcher[launched]]
    return Links(launcher, forward, is_backward, scope)


def steps_of(ts_ns: Array, step_ts_ns: Array, step_dur_ns: Array) -> Array:
    """The step that contains each moment, counted from 1; 0 outside all steps."""
    if not len(step_ts_ns):
        return np.zeros(len(ts_ns), dtype=np.int64)
    place = np.searchsorted(step_ts_ns, ts_ns, side="right") - 1
    inside = (place >= 0) & (ts_ns < (step_ts_ns + step_dur_ns)[place])
    return np.where(inside, place + 1, 0)


def forward_backward(links: Links, spans: Spans, parent: Array) -> tuple[Array, Array]:
    """Rows of (forward, backward): one pair per outermost span of a backward node."""
    backward = np.flatnonzero(links.forward >= 0)
    above = parent[backward]
    repeats = (above >= 0) & (links.forward[above] == links.forward[backward])
    backward = backward[~repeats]
    return links.forward[backward], backward


def _has_backward_name(spans: Spans, words: Vocabulary) -> Array:
    # Only of the names that occur: a long run has one per step, and a slice of it few of them.
    used, where = occurring(spans.name)
    names = list(words.names)
    prefixed = [names[code].startswith(BACKWARD_NAMES) for code in used.tolist()]
    return np.array(prefixed, dtype=bool)[where]


def _is_backward_node(spans: Spans) -> Array:
    """Autograd numbers the thread of the forward pass from 1, and writes 0 in the pass itself."""
    return (spans.arg("sequence") >= 0) & (spans.arg("forward_thread") > 0)


def _on_backward_thread(spans: Spans) -> Array:
    """On autograd's own threads, everything between its nodes (sums of gradients) is backward.

    If a forward pass runs there too, as on the CPU, this cannot be decided.
    """
    node = _is_backward_node(spans)
    forward = (spans.arg("sequence") >= 0) & ~node
    is_own = np.zeros(int(spans.track.max(initial=-1)) + 1, dtype=np.bool_)
    is_own[spans.track[node]] = True
    is_own[spans.track[forward]] = False
    return is_own[spans.track]


def _forward_of(spans: Spans) -> Array:
    """Of several operators with one sequence number the last one, the innermost, created
    the node.
    """
    result = np.full(len(spans), -1, dtype=np.int64)
    sequence, window = spans.arg("sequence"), spans.arg("window")
    backward = np.flatnonzero(_is_backward_node(spans))
    forward = np.flatnonzero((sequence >= 0) & (spans.arg("forward_thread") <= 0))
    if not len(backward) or not len(forward):
        return result
    threads = spans.arg("forward_thread")[backward]
    for number, thread in {*zip(window[backward].tolist(), threads.tolist(), strict=True)}:
        mine = backward[(window[backward] == number) & (threads == thread)]
        found = _best_match(spans, mine, forward[window[forward] == number])
        result[mine] = np.where((found >= 0) & (found < mine), found, -1)
    return result


def _best_match(spans: Spans, backward: Array, forward: Array) -> Array:
    """The trace does not say which thread autograd's number means: use the one that fits best."""
    sequence = spans.arg("sequence")
    best, best_count = np.full(len(backward), -1, dtype=np.int64), -1
    for track in occurring(spans.track[forward])[0].tolist():
        rows = forward[spans.track[forward] == track]
        found = _lookup(sequence[backward], sequence[rows][::-1], rows[::-1])
        count = int((found >= 0).sum())
        if count > best_count:
            best, best_count = found, count
    return best


def _lookup(wanted: Array, keys: Array, rows: Array) -> Array:
    """The row of the first equal key for each wanted value; -1 if there is none."""
    if not len(keys):
        return np.full(len(wanted), -1, dtype=np.int64)
    distinct, first = np.unique(keys, return_index=True)
    place = np.minimum(np.searchsorted(distinct, wanted), len(distinct) - 1)
    return np.where(distinct[place] == wanted, rows[first[place]], -1)


def _scopes(spans: Spans, parent: Array, forward: Array) -> Array:
    """A module's own path, passed on to what it contains and to its gradients."""
    told = spans.arg("scope")
    own = np.where(told >= 0, told, spans.arg("module"))
    has_own = (spans.kind == KIND["module"]) | (told >= 0)
    source = nearest(has_own, parent)
    scope = np.where(source >= 0, own[source], -1)
    handed_over = (forward >= 0) & ~has_own
    given = np.where(handed_over, scope[forward], own)
    source = nearest(has_own | handed_over, parent)
    return np.where(source >= 0, given[source], -1)


def _launchers(spans: Spans) -> Array:
    """By the correlation number of the runtime call, otherwise by the operator's external id."""
    result = np.full(len(spans), -1, dtype=np.int64)
    device = np.flatnonzero(spans.arg("on_device") > 0)
    if not len(device):
        return result
    call = np.isin(spans.kind, (KIND["runtime"], KIND["sync"]))
    host = {"correlation": call, "external": spans.kind == KIND["op"]}
    for name, chosen in host.items():
        number = spans.arg(name)
        key = (spans.arg("window") << _WINDOW_SHIFT) | (number & _NUMBER_MASK)
        rows = np.flatnonzero(chosen & (number > 0))
        open_rows = device[(result[device] < 0) & (number[device] > 0)]
        result[open_rows] = _lookup(key[open_rows], key[rows], rows)
    return result
