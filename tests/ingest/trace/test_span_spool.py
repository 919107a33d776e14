import gc
import weakref

import numpy as np

from strobe.ingest.trace import span_spool, spans


def test_nothing_of_a_long_part_stays_in_memory(tmp_path):
    column = np.arange(250)
    part = spans.make(column, column, 0, column, column)
    with span_spool.scratch_in(tmp_path):
        kept = span_spool.Spool(100)
        kept.append(part)
    is_there = weakref.ref(part.dur_ns)
    del part, column
    gc.collect()
    assert is_there() is None
    found = [moment for piece in kept.slices() for moment in piece.spans.ts_ns.tolist()]
    assert found == list(range(250))
    assert list(tmp_path.iterdir()) == []


def spool_of(moments: list[int], part_rows: int, held_rows: int) -> span_spool.Spool:
    kept = span_spool.Spool(100, held_rows)
    for start in range(0, len(moments), part_rows):
        part = np.array(moments[start : start + part_rows])
        kept.append(spans.make(part, part * 0, 0, part, part * 0))
    return kept


def told(kept: span_spool.Spool) -> list[tuple[list[int], int]]:
    return [(piece.spans.ts_ns.tolist(), piece.until_ns) for piece in kept.slices()]


def test_what_may_be_held_comes_back_in_slices_and_needs_no_file(tmp_path):
    moments = np.random.default_rng(1).permutation(450).tolist()
    with span_spool.scratch_in(tmp_path):
        held = spool_of(moments, 150, held_rows=450)
        assert list(tmp_path.iterdir()) == []
        slices = told(held)
    assert [moment for some, _ in slices for moment in some] == list(range(450))
    assert len(slices) == 5
    assert all(some[-1] < until_ns for some, until_ns in slices)
    assert (held.rows, len(held)) == (0, 0)


def test_one_row_more_than_may_be_held_and_all_goes_to_disk_with_the_same_slices(tmp_path):
    moments = np.random.default_rng(2).permutation(451).tolist()
    with span_spool.scratch_in(tmp_path):
        on_disk = spool_of(moments, 50, held_rows=450)
        assert len(list(tmp_path.iterdir())) == 1
        held = spool_of(moments, 50, held_rows=451)
        for kept in (on_disk, held):
            kept.shift(1000)
        assert told(on_disk) == told(held)
    assert list(tmp_path.iterdir()) == []
