"""Which way a copy went, and from or to which memory of the host, by what its library calls it."""

import re
from typing import Any

import numpy as np

from strobe.ingest.formats.kinds import KIND
from strobe.ingest.trace.codes import Array, Codes, strings
from strobe.ingest.trace.spans import Spans, Vocabulary
from strobe.model.schema import DIRECTIONS

# "Memcpy HtoD (Pageable -> Device)", "Memcpy(M2D)"; "CopyHostToDevice", "DEVICE_TO_HOST".
_LETTERS = re.compile(r"(?<![A-Za-z])([HDPAM])(?:to|2)([HDPAM])(?![a-z])")
_WORDS = re.compile(r"(host|device|peer)[ _]?to[ _]?(host|device|peer)", re.IGNORECASE)
_SIDES = {"h": "host", "m": "host", "d": "device", "a": "device", "p": "peer"}
_HOST_MEMORY = re.compile(r"pageable|pinned", re.IGNORECASE)


def direction_of(text: str) -> str | None:
    """One of schema.DIRECTIONS."""
    found = _LETTERS.search(text) or _WORDS.search(text)
    if found is None:
        return None
    one, other = (_SIDES.get(side[0].lower(), "device") for side in found.groups())
    way = f"{one} to {other}"
    return way if way in DIRECTIONS else None


def host_memory_of(text: str) -> str | None:
    found = _HOST_MEMORY.search(text)
    return found.group().lower() if found else None


def way(spans: Spans, rows: Array, words: Vocabulary) -> dict[str, Any]:
    """The columns `direction` and `host_memory` of some spans; each text is judged once."""
    names, texts = list(words.names), list(words.texts)
    is_copy = spans.kind[rows] == KIND["memcpy"]
    columns = {}
    for column, judge in (("direction", direction_of), ("host_memory", host_memory_of)):
        found, codes = Codes[str](), np.full(len(rows), -1, dtype=np.int32)
        given = np.where(is_copy, spans.arg(column)[rows], -1)
        by_name = np.where(is_copy & (given < 0), spans.name[rows], -1)
        for numbers, known in ((given, texts), (by_name, names)):
            distinct, back = np.unique(numbers, return_inverse=True)
            judged = [judge(known[n]) if n >= 0 else None for n in distinct.tolist()]
            code = np.array([-1 if j is None else found[j] for j in judged], dtype=np.int32)
            codes = np.where(numbers >= 0, code[back] if len(code) else codes, codes)
        columns[column] = strings(codes, found)
    return columns
