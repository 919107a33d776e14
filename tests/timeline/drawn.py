"""Random small timelines, and the truth about them by counting every nanosecond."""

import numpy as np

from strobe.timeline.index import Index, make_index
from tests.helpers import make_run


def random_drawing(seed: int, tracks: int = 3, events: int = 60, span: int = 4000) -> str:
    """Events of any length, nested, overlapping and without length, on some tracks."""
    random = np.random.default_rng(seed)
    lines = []
    for number in range(events):
        start = int(random.integers(0, span))
        length = int(random.choice([0, 1, 3, 20, 150, 900]))
        track = int(random.integers(0, tracks))
        lines.append(f"0/t{track} op:n{number % 7} {start}..{start + length}")
    return "\n".join(lines)


def index_of(folder, drawing: str, extra=None) -> Index:
    with_run = make_run(folder, drawing, extra)
    try:
        return make_index(with_run)
    finally:
        with_run.close()


def covered(index: Index, row: int) -> np.ndarray:
    """For each nanosecond from the origin, how many events of the row cover it."""
    result = np.zeros(index.about["span_ns"] + 1, dtype=np.int64)
    for at in range(*index.arrays["row_at"][row : row + 2]):
        start, length = index.arrays["start_ns"][at], index.arrays["dur_ns"][at]
        result[start : start + length] += 1
    return result
