"""What the journal's marks contain besides the steps: spans, counters, queue lengths."""

import numpy as np

from strobe.ingest.formats.kinds import KIND
from strobe.ingest.recording.journal_reader import Journal
from strobe.ingest.steps.detection import Evaluations
from strobe.ingest.trace import spans
from strobe.ingest.trace.codes import Array, in_order_once
from strobe.ingest.trace.problems import Problems
from strobe.ingest.trace.spans import (
    EVALUATION_TRACK,
    PROGRAMS_TRACK,
    WINDOWS_TRACK,
    Spans,
    Track,
    Vocabulary,
)
from strobe.ingest.trace.trace import Samples
from strobe.model.journal import GRAPH_PARTS_BITS, NOT_COMPILED, QUEUE_CAPACITY_SHIFT, Mark
from strobe.model.schema import (
    COMPILED_PROGRAMS,
    EVALUATION,
    EVALUATION_WITH_GRADIENTS,
    FORWARD_IN_EVALUATION_MODE,
)

# begin, end, the kind of event between them, its name if the mark names nothing
_PAIRS = (
    (Mark.DATA_ASKED, Mark.DATA_CAME, "data", "next batch"),
    (Mark.LOADER_BEGAN, Mark.LOADER_STARTED, "data", "loader starts"),
    (Mark.SCOPE_BEGAN, Mark.SCOPE_ENDED, "annotation", "scope"),
    (Mark.COLLECTIVE_BEGAN, Mark.COLLECTIVE_ENDED, "collective", "collective"),
)


def journal_spans(journal: Journal, ts_ns: Array, words: Vocabulary, said: Problems) -> list[Spans]:
    """Waits for data, named scopes, collectives, garbage collections, and the dispatch of work to a
    device and waits for it, on their threads.
    """
    tracks = _thread_tracks(journal, words)
    found = [_paired(journal, ts_ns, pair, tracks, words, said) for pair in _PAIRS] + [
        _pauses(journal, ts_ns, tracks, words),
        _lengths(journal, ts_ns, (Mark.DISPATCH, "runtime", "dispatch"), tracks, words),
        _lengths(journal, ts_ns, (Mark.DEVICE_WAIT, "sync", "wait for the device"), tracks, words),
    ]
    return [part for part in found if len(part)]


def window_spans(journal: Journal, ts_ns: Array, read: set[int], words: Vocabulary) -> Spans:
    """The intervals recorded in full, of the windows whose trace could be read."""
    is_read = np.isin(journal.value, list(read))
    begins = (journal.code == Mark.WINDOW_BEGAN) & is_read
    ends = (journal.code == Mark.WINDOW_ENDED) & is_read
    first, last = pairs(begins, ends, journal.value)
    # A long window is recorded in pieces, with nothing but our own work between them.
    order = np.argsort(journal.value[first], kind="stable")
    first, last = first[order], last[order]
    follows = np.diff(journal.value[first], prepend=-1) == 1
    goes_on = follows & (journal.ref[first] == 1)
    first, last = first[~goes_on], last[~np.append(goes_on, False)[1:]]
    names = [words.names[_window_name(journal, n)] for n in journal.value[first].tolist()]
    track = 0
    if names:
        track = words.tracks[WINDOWS_TRACK]
        words.track_names[WINDOWS_TRACK] = "full recording"
    dur_ns = ts_ns[last] - ts_ns[first]
    return spans.make(ts_ns[first], dur_ns, KIND["annotation"], np.array(names),
                      np.full(len(first), track))  # fmt: skip


def _window_name(journal: Journal, number: int) -> str:
    """With the reason, if it was requested while training ran."""
    asked = (f for f in journal.facts if f["type"] == "asked window" and f.get("window") == number)
    fact = next(asked, None)
    if fact is None:
        return f"strobe window {number}"
    return f"strobe window {number}: {fact.get('why') or 'asked for by ' + str(fact.get('by'))}"


def program_spans(journal: Journal, ts_ns: Array, words: Vocabulary) -> Spans:
    """The runs of compiled programs that train: no Python between their operators."""
    refs = in_order_once(journal.ref[journal.code == Mark.GRAPH]).tolist()
    compiled = [ref for ref in refs if not journal.text(ref, "").endswith(NOT_COMPILED)]
    is_run = (journal.value & (1 << GRAPH_PARTS_BITS) - 1) > 0
    chosen = (journal.code == Mark.GRAPH) & is_run & np.isin(journal.ref, compiled)
    track = 0
    if chosen.any():
        track = words.tracks[PROGRAMS_TRACK]
        words.track_names[PROGRAMS_TRACK] = COMPILED_PROGRAMS
    names = _ref_names(journal, chosen, "graph", words, "program ")
    dur_ns = journal.value[chosen] >> GRAPH_PARTS_BITS
    return spans.make(ts_ns[chosen], dur_ns, KIND["runtime"], names,
                      np.full(int(chosen.sum()), track))  # fmt: skip


def evaluation_spans(found: Evaluations, words: Vocabulary) -> Spans:
    """Forward passes that do not train, each a span; its name says whether gradients were on."""
    wanted = found.has_gradients | ~found.is_followed
    count = int(wanted.sum())
    track = 0
    if count:
        track = words.tracks[EVALUATION_TRACK]
        words.track_names[EVALUATION_TRACK] = "evaluation"
    unfollowed = np.where(found.has_gradients, EVALUATION_WITH_GRADIENTS, EVALUATION)
    called = np.where(found.is_followed, FORWARD_IN_EVALUATION_MODE, unfollowed)[wanted]
    names = [words.names[name] for name in called.tolist()]
    return spans.make(found.ts_ns[wanted], found.dur_ns[wanted], KIND["annotation"],
                      np.array(names), np.full(count, track))  # fmt: skip


def counters(journal: Journal, ts_ns: Array, words: Vocabulary) -> Samples:
    chosen = journal.code == Mark.COUNTER
    names = _ref_names(journal, chosen, "unnamed counter", words)
    return Samples(ts_ns[chosen], names, journal.value[chosen])


def queues(journal: Journal, ts_ns: Array, words: Vocabulary) -> Samples:
    """The number of ready batches each time the loop requested one, where known."""
    seen = journal.code == Mark.QUEUE
    if seen.any():
        names, value = _ref_names(journal, seen, "queue", words), journal.value[seen]
        length = value & ((1 << QUEUE_CAPACITY_SHIFT) - 1)
        return Samples(ts_ns[seen], names, length, value >> QUEUE_CAPACITY_SHIFT)
    chosen = (journal.code == Mark.DATA_ASKED) & (journal.value >= 0)
    names = _ref_names(journal, chosen, "data loader", words)
    return Samples(ts_ns[chosen], names, journal.value[chosen])


def pairs(begins: Array, ends: Array, group: Array) -> tuple[Array, Array]:
    """Rows of beginnings and their ends, for marks in order of time; pairs of a group may nest.

    Marks of one group at one depth alternate, so a beginning belongs to the end that follows it.
    """
    rows = np.flatnonzero(begins | ends)
    rows = rows[np.argsort(group[rows], kind="stable")]
    if not len(rows):
        return rows, rows
    change = np.where(begins[rows], 1, -1)
    level = np.cumsum(change)
    _, which = np.unique(group[rows], return_inverse=True)
    depth = np.where(change > 0, level, level + 1)
    order = np.lexsort((np.arange(len(rows)), depth, which))
    first, second = order[:-1], order[1:]
    match = (change[first] > 0) & (change[second] < 0)
    match &= (which[first] == which[second]) & (depth[first] == depth[second])
    return rows[first[match]], rows[second[match]]


def _thread_tracks(journal: Journal, words: Vocabulary) -> Array:
    """The track of every mark's thread."""
    process = journal.last_fact("process") or {}
    known = journal.threads()
    threads, back = np.unique(journal.thread, return_inverse=True)
    numbers = []
    for index in threads.tolist():
        fact = known.get(index, {})
        track = Track("cpu", process.get("pid"), fact.get("native_id"))
        words.track_names[track] = str(fact.get("name") or f"thread {index}")
        numbers.append(words.tracks[track])
    return np.array(numbers, dtype=np.int32)[back] if numbers else np.zeros(0, dtype=np.int32)


def _paired(
    journal: Journal, ts_ns: Array, pair: tuple[Mark, Mark, str, str], tracks: Array,
    words: Vocabulary, said: Problems,
) -> Spans:  # fmt: skip
    began, ended, kind, otherwise = pair
    begins, ends = journal.code == began, journal.code == ended
    group = journal.thread * 2**32 + journal.ref
    first, last = pairs(begins, ends, group)
    open_ends = int(begins.sum()) - len(first)
    said.add("journal", f"{began.name} without its {ended.name}: left out", open_ends)
    names = [words.names[journal.text(ref, otherwise)] for ref in journal.ref[first].tolist()]
    found = spans.make(
        ts_ns[first], ts_ns[last] - ts_ns[first], KIND[kind], np.array(names), tracks[first]
    )
    if began == Mark.COLLECTIVE_BEGAN:
        found.args["bytes"] = journal.value[first]
    return found


def _pauses(journal: Journal, ts_ns: Array, tracks: Array, words: Vocabulary) -> Spans:
    chosen = journal.code == Mark.GC_PAUSE
    value = journal.value[chosen]
    names = np.array([words.names[f"collect generation {g}"] for g in range(4)])[value & 3]
    return spans.make(ts_ns[chosen], value >> 2, KIND["gc"], names, tracks[chosen])


def _lengths(
    journal: Journal, ts_ns: Array, mark: tuple[Mark, str, str], tracks: Array, words: Vocabulary
) -> Spans:
    """Spans recorded by a single mark, named after their kind and their subject."""
    code, kind, what = mark
    chosen = journal.code == code
    names = _ref_names(journal, chosen, "", words, f"{what} ")
    return spans.make(ts_ns[chosen], journal.value[chosen], KIND[kind], names, tracks[chosen])


def _ref_names(
    journal: Journal, chosen: Array, otherwise: str, words: Vocabulary, prefix: str = ""
) -> Array:
    refs, back = np.unique(journal.ref[chosen], return_inverse=True)
    texts = (journal.text(ref, otherwise) for ref in refs.tolist())
    codes = words.names.of((prefix + text).rstrip() if prefix else text for text in texts)
    return codes[back] if len(codes) else codes
