import random

import duckdb

from strobe.analyse.intervals import covered


def test_agrees_with_counting_every_nanosecond():
    rng = random.Random(7)
    for _ in range(100):
        starts = [rng.randrange(30) for _ in range(rng.randrange(1, 7))]
        spans = [(start, start + rng.randrange(9)) for start in starts]
        values = ", ".join(f"(1, {start}, {end})" for start, end in spans)
        query = covered(f"SELECT * FROM (VALUES {values}) v(k, ts_ns, end_ns)", "k")
        counted = len({t for start, end in spans for t in range(start, end)})
        assert duckdb.sql(query).fetchall() == [(1, counted)]
