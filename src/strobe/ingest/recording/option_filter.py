"""What the options of a recording exclude from its tables, or add to them."""

from typing import Any

import numpy as np

from strobe.ingest.building import event_links, nesting
from strobe.ingest.formats import kineto
from strobe.ingest.formats.kinds import KIND
from strobe.ingest.formats.kineto import spans as kineto_spans
from strobe.ingest.recording.journal_reader import Journal
from strobe.ingest.trace.codes import Array
from strobe.ingest.trace.spans import Spans, Vocabulary
from strobe.ingest.trace.trace import Memory, Samples


def options(marks: Journal) -> dict[str, Any]:
    """As the recorder stored them; a recording of an older Strobe has none."""
    given = (marks.last_fact("options") or {}).get("options")
    return given if isinstance(given, dict) else {}


def of_window(marks: Journal, number: int) -> dict[str, Any]:
    """Including those of a window that was requested while training ran."""
    asked = (f for f in marks.facts if f["type"] == "asked window" and f.get("window") == number)
    own = next(asked, {}).get("options")
    return {**options(marks), **(own if isinstance(own, dict) else {})}


def spans(found: Spans, given: dict[str, Any], words: Vocabulary) -> Spans:
    """Without the operators of the pass that was not requested, and anything else unwanted."""
    keep = np.ones(len(found), dtype=bool)
    for option, kind in (("profile_communication", "collective"), ("data_process", "data")):
        if given.get(option) is False:
            keep &= found.kind != KIND[kind]
    if given.get("subgraph") in ("forward", "backward"):
        keep &= ~_of_other_pass(found, given["subgraph"], words)
    return found if keep.all() else found.take(np.flatnonzero(keep))


def _of_other_pass(found: Spans, wanted: str, words: Vocabulary) -> Array:
    ordered = np.lexsort((-found.dur_ns, found.ts_ns))
    inside = found.take(ordered)
    parent = nesting.parents(inside.track, inside.ts_ns, inside.dur_ns)
    is_backward = np.zeros(len(found), dtype=bool)
    is_backward[ordered] = event_links.links(inside, parent, words).is_backward
    other = is_backward if wanted == "forward" else ~is_backward
    result: Array = (found.kind == KIND["op"]) & other
    return result


def memory(found: Memory, given: dict[str, Any]) -> Memory:
    """A curve requires torch to record every block; if only the curve was requested, only it is
    returned.
    """
    if given.get("sample_rate") and not given.get("profile_memory"):
        return Memory(*(column[:0] for column in found))
    return found


def memory_curve(
    trace: kineto.Trace, found: Spans, given: dict[str, Any], words: Vocabulary,
    started_unix_ns: int,
) -> list[Samples]:  # fmt: skip
    """Allocated memory after every N operators, in run time."""
    rate = given.get("sample_rate")
    if not isinstance(rate, int) or rate <= 0:
        return []
    is_operator = found.kind == KIND["op"]
    ends = np.sort((found.ts_ns + found.dur_ns)[is_operator])[rate - 1 :: rate]
    return [
        _at(part._replace(ts_ns=part.ts_ns - started_unix_ns), ends)
        for part in kineto_spans.memory_counters(trace, words)
    ]


def _at(part: Samples, moments: Array) -> Samples:
    """The last value before each moment."""
    place = np.searchsorted(part.ts_ns, moments, side="right") - 1
    known = place >= 0
    place = place[known]
    return Samples(moments[known], part.name[place], part.value[place])
