import random

import duckdb

from strobe.analyse.intervals import covered, hidden, merged

RNG = random.Random(7)


def some_spans(shortest=1):
    starts = [RNG.randrange(30) for _ in range(RNG.randrange(shortest, 7))]
    return [(start, start + RNG.randrange(9)) for start in starts]


def query_of(spans):
    values = ", ".join(f"(1, {start}, {end})" for start, end in spans) or "(0, 0, 0)"
    return f"SELECT * FROM (VALUES {values}) v(k, ts_ns, end_ns)"


def moments(spans):
    return {t for start, end in spans for t in range(start, end)}


def test_covered_agrees_with_counting_every_nanosecond():
    for _ in range(100):
        spans = some_spans()
        found = duckdb.sql(covered(query_of(spans), "k")).fetchall()
        assert found == [(1, len(moments(spans)))]


def test_merged_spans_are_apart_and_cover_the_same():
    for _ in range(100):
        spans = some_spans()
        found = duckdb.sql(merged(query_of(spans), "k")).order("ts_ns").fetchall()
        assert moments(row[1:] for row in found) == moments(spans)
        assert all(a[2] < b[1] for a, b in zip(found, found[1:], strict=False))


def test_hidden_agrees_with_counting_every_nanosecond():
    for _ in range(100):
        spans, others = some_spans(), some_spans(shortest=0)
        query = hidden(query_of(spans), query_of(others), "k")
        for _, start, end, found in duckdb.sql(query).fetchall():
            assert found == len(moments([(start, end)]) & moments(others))
