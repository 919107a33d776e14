"""From when to when do some steps last?"""

import re

import numpy as np

from strobe.timeline.index import Index


def stretch(
    index: Index, first: int | None, last: int | None, rank: int | None
) -> tuple[int, int] | None:
    """Begin and end of steps `first` to `last`, of one rank or all; none where there are none."""
    numbers = _numbers(index)
    begin, end, row = [], [], 0
    for track in index.about["tracks"]:
        rows = range(row, row + track["rows"])
        row += track["rows"]
        if track["device"] != "steps" or (rank is not None and track["rank"] != rank):
            continue
        at = slice(int(index.arrays["row_at"][rows[0]]), int(index.arrays["row_at"][rows[-1] + 1]))
        step = numbers[index.arrays["name"][at]]
        chosen = (step >= (first or 0)) & (step <= (2**62 if last is None else last)) & (step >= 0)
        start = index.arrays["start_ns"][at][chosen]
        if len(start):
            begin.append(int(start.min()))
            end.append(int((start + index.arrays["dur_ns"][at][chosen]).max()))
    if not begin:
        return None
    return min(begin) + index.origin_ns, max(end) + index.origin_ns


def _numbers(index: Index) -> "np.ndarray[tuple[int], np.dtype[np.int64]]":
    """The number of the step that each name stands for, or -1."""
    numbers = np.full(index.names, -1, dtype=np.int64)
    kind = index.about["kinds"].index("step")
    for code in np.flatnonzero(index.arrays["name_kind"] == kind).tolist():
        match = re.fullmatch(r"\D*(\d{1,18})", index.name(code), re.ASCII)
        if match is not None:
            numbers[code] = int(match[1])
    return numbers
