"""Which events are called so, how many, where; and the next one from here."""

from typing import Any, NamedTuple

import numpy as np

from strobe.errors import UsageError
from strobe.timeline.index import Index
from strobe.timeline.rows import Array

# Names told of one search; the others are counted.
MOST_NAMES = 100
# More numbers of names than that are of no use to a viewer that marks what was found.
_MOST_CODES = 20_000
# Where in time hits lie, for a strip as wide as a screen.
DENSITY_BUCKETS = 512


class Hits(NamedTuple):
    """Events that were found, as positions, and the numbers of their names."""

    codes: Array
    position: Array
    start_ns: Array


def find(index: Index, text: str) -> Hits:
    """Events whose name has every word of the text in it; `kind:sync` asks for a kind."""
    codes = _matching(index, text)
    wanted = np.zeros(index.names, dtype=bool)
    wanted[codes] = True
    position = np.flatnonzero(wanted[index.arrays["name"]])
    return Hits(codes, position, index.arrays["start_ns"][position])


def _matching(index: Index, text: str) -> Array:
    words = text.casefold().split()
    if not words:
        raise UsageError.of("errors/pages.nothing-to-search")
    kinds = {word.removeprefix("kind:") for word in words if word.startswith("kind:")}
    unknown = kinds - set(index.about["kinds"])
    if unknown:
        raise UsageError.of(
            "errors/pages.unknown-kind",
            name=sorted(unknown)[0],
            known=", ".join(index.about["kinds"]),
        )
    parts = [word for word in words if not word.startswith("kind:")]
    found = [
        code
        for code in range(index.names)
        if (not kinds or index.kind(code) in kinds) and _has(index.name(code).casefold(), parts)
    ]
    return np.array(found, dtype=np.int64)


def _has(name: str, parts: list[str]) -> bool:
    return all(part in name for part in parts)


def told(index: Index, hits: Hits) -> dict[str, Any]:
    """How many there are, of which names, and where in time."""
    name = index.arrays["name"][hits.position]
    count = np.bincount(name, minlength=index.names)
    total = np.bincount(name, index.arrays["dur_ns"][hits.position], minlength=index.names)
    most = hits.codes[np.argsort(-total[hits.codes], kind="stable")]
    span = max(1, int(index.about["span_ns"]))
    bucket = np.minimum(hits.start_ns * DENSITY_BUCKETS // span, DENSITY_BUCKETS - 1)
    return {
        "total": len(hits.position),
        "names": [
            {
                "code": code,
                "name": index.name(code),
                "kind": index.kind(code),
                "count": int(count[code]),
                "total_ns": int(total[code]),
            }
            for code in most[:MOST_NAMES].tolist()
        ],
        "names_total": len(hits.codes),
        "codes": hits.codes.tolist() if len(hits.codes) <= _MOST_CODES else None,
        "density": np.bincount(bucket, minlength=DENSITY_BUCKETS).tolist(),
    }


def following(index: Index, hits: Hits, from_ns: int, position: int, back: bool) -> int | None:
    """The place among the hits, in order of time, of the next one or the one before; round about.

    From an event (`position`), or, where that is -1, from a moment.
    """
    if not len(hits.position):
        return None
    at = from_ns - index.origin_ns if position < 0 else int(index.arrays["start_ns"][position])
    if back:
        later = (hits.start_ns < at) | ((hits.start_ns == at) & (hits.position < position))
    else:
        later = (hits.start_ns > at) | ((hits.start_ns == at) & (hits.position > position))
    candidates = np.flatnonzero(later) if later.any() else np.arange(len(later))
    order = np.lexsort((hits.position[candidates], hits.start_ns[candidates]))
    return int(candidates[order[-1 if back else 0]])


def number_of(hits: Hits, place: int) -> int:
    """How many hits there are up to this one, itself included, in order of time."""
    start, position = hits.start_ns[place], hits.position[place]
    before = (hits.start_ns < start) | ((hits.start_ns == start) & (hits.position <= position))
    return int(before.sum())
