"""Interval arithmetic as SQL text: time covered by spans, merged spans, time hidden by others.

Everywhere, `spans` is a query with the columns of `by`, ts_ns and end_ns.
"""


def covered(spans: str, by: str) -> str:
    """A query for `by` and covered_ns: time within a group covered by at least one span.

    In order of start, each span adds what extends beyond the furthest end before it.
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


def merged(spans: str, by: str) -> str:
    """A query for `by`, ts_ns and end_ns: the spans of a group, merged where they touch.

    A span that begins after the furthest end before it starts a new one.
    """
    order = f"PARTITION BY {by} ORDER BY ts_ns, end_ns"
    return f"""
        SELECT {by}, min(ts_ns) AS ts_ns, max(end_ns) AS end_ns FROM (
            SELECT *, sum(begins::INT) OVER ({order} ROWS UNBOUNDED PRECEDING) AS island FROM (
                SELECT {by}, ts_ns, end_ns, coalesce(ts_ns > max(end_ns) OVER (
                    {order} ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), true) AS begins
                FROM ({spans})
            )
        ) GROUP BY {by}, island
    """


def hidden(spans: str, others: str, by: str) -> str:
    """The query `spans` with hidden_ns: how much of each span is covered by the others.

    The time that others cover up to a moment is known at each of their merged spans. The difference
    between a span's end and its start is what hides it.
    """
    columns = [name.strip() for name in by.split(",")]
    before = "coalesce({0}.before_ns + least({0}.end_ns, s.{1}) - {0}.ts_ns, 0)"
    join = "ASOF LEFT JOIN others {0} ON {0}.ts_ns <= s.{1}" + "".join(
        f" AND {{0}}.{name} = s.{name}" for name in columns
    )
    return f"""
        WITH others AS MATERIALIZED (
            SELECT *, coalesce(sum(end_ns - ts_ns) OVER (
                PARTITION BY {by} ORDER BY ts_ns ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
            ), 0) AS before_ns
            FROM ({merged(others, by)})
        )
        SELECT s.*, ({before.format("last", "end_ns")} - {before.format("first", "ts_ns")})::BIGINT
            AS hidden_ns
        FROM ({spans}) s
        {join.format("first", "ts_ns")}
        {join.format("last", "end_ns")}
    """
