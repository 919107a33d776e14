"""Interval mathematics as SQL text: time covered by at least one span."""


def covered(spans: str, by: str) -> str:
    """A query for `by` and covered_ns: time within a group covered by at least one span.

    `spans` is a query with the columns of `by`, ts_ns and end_ns. Each span, in order of
    its start, adds what reaches beyond the furthest end before it.
    """
    return f"""
        SELECT {by}, sum(greatest(0, end_ns - greatest(ts_ns, coalesce(reach_ns, ts_ns))))::BIGINT
            AS covered_ns
        FROM (
            SELECT *, max(end_ns) OVER (
                PARTITION BY {by} ORDER BY ts_ns, end_ns
                ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
            ) AS reach_ns
            FROM ({spans})
        )
        GROUP BY {by}
    """
