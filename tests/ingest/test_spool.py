import gc
import weakref

import numpy as np

from strobe.ingest import spans, spool


def test_nothing_of_a_long_part_stays_in_memory(tmp_path):
    column = np.arange(250)
    part = spans.make(column, column, 0, column, column)
    with spool.scratch_in(tmp_path):
        kept = spool.Spool(100)
        kept.append(part)
    is_there = weakref.ref(part.dur_ns)
    del part, column
    gc.collect()
    assert is_there() is None
    found = [moment for piece in kept.slices() for moment in piece.spans.ts_ns.tolist()]
    assert found == list(range(250))
    assert list(tmp_path.iterdir()) == []
