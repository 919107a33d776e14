"""What do collectives cost: by operation, group and size?

Bandwidths are those of nccl-tests. Algorithm bandwidth is size over time. Bus bandwidth is what the
links carry: the algorithm's times 2(n-1)/n for all_reduce, (n-1)/n for all_gather, reduce_scatter,
all_to_all, gather and scatter, 1 for the rest, in a group of n. The size is the whole vector: what
a rank receives from an all_gather, what it sends to any other. Time includes waiting for other
ranks, so the fastest call says most about the links.

A rank that waits has the longer call; the same call on other ranks shows how long it waits. Calls
are the same if they are the nth of their operation and group (and size, where all ranks send the
same), and every rank has the same number of them.
"""

from typing import Any

import duckdb

from strobe.analyse.devices import prepare_devices
from strobe.analyse.intervals import hidden
from strobe.analyse.select import declared
from strobe.analyse.tables.steps.overlap import COLLECTIVES, COMPUTATION
from strobe.model.schema import Column, Table
from strobe.store.run import Run

NAME = "communication"

RESULT = Table(
    NAME,
    "What do collectives cost: by operation, group and size?",
    (
        Column("rank", "i64", "Rank of the process."),
        Column("device", "str", "cuda:0, npu:0, ..., or cpu for collectives of the host."),
        Column("operation", "str", "all_reduce, all_gather, ..."),
        Column("group", "str", "Name of the process group.", nullable=True),
        Column("group_size", "i64", "Ranks in the group.", nullable=True),
        Column("dtype", "str", "Type of the elements.", nullable=True),
        Column("size_bytes", "i64", "Size of the vector per call.", nullable=True),
        Column("calls", "i64", "Number of calls."),
        Column("bytes", "i64", "Total size over all calls.", nullable=True),
        Column("total_ns", "i64", "Total time over all calls."),
        Column("mean_ns", "i64", "Mean time per call, rounded."),
        Column("min_ns", "i64", "Shortest call."),
        Column("max_ns", "i64", "Longest call."),
        Column("exposed_ns", "i64", "Time of the calls during which nothing computed."),
        Column("share", "f64", "Its share of the time of all collectives of the rank."),
        Column("algorithm_bytes_per_s", "f64", "Algorithm bandwidth, over all calls.", True),
        Column("bus_bytes_per_s", "f64", "Bus bandwidth, over all calls.", nullable=True),
        Column("fastest_bus_bytes_per_s", "f64", "Bus bandwidth of the fastest call.", True),
        Column("wait_ns", "i64", "Time spent waiting for slower ranks; null with one rank.", True),
        Column(
            "skew_ns",
            "i64",
            "Mean difference between the longest and shortest rank of a call.",
            True,
        ),
        Column("algorithm", "str", "Algorithm: ring, tree, ...", nullable=True),
    ),
)

# Ranks have different partners in these, so their calls are not the same call.
_PAIRWISE = "('send', 'recv', 'send_recv')"

# Every rank sends the same amount.
_OF_ONE_SIZE = "('all_reduce', 'broadcast', 'reduce')"

# What the same call has in common on all ranks.
_LIKE = 'operation, "group", group_ranks, same_bytes'

_SIZE = """CASE WHEN operation = 'all_gather' THEN coalesce(received_bytes, bytes * group_size)
    WHEN operation = 'reduce_scatter' THEN coalesce(bytes, received_bytes * group_size)
    ELSE coalesce(bytes, received_bytes) END"""

_BUS_FACTOR = """CASE WHEN operation = 'all_reduce' THEN 2 * (group_size - 1) / group_size
    WHEN operation IN ('all_gather', 'reduce_scatter', 'all_to_all', 'gather', 'scatter')
        THEN (group_size - 1) / group_size
    WHEN operation IN ('broadcast', 'reduce', 'send', 'recv', 'send_recv') THEN 1 END"""


def _sql(only_recorded: bool) -> str:
    return f"""
    WITH calls AS (
        SELECT c.*, coalesce(a.operation, c.name) AS operation, a."group", a.group_size, a.dtype,
               a.group_ranks, a.algorithm, {_SIZE} AS size_bytes,
               CASE WHEN a.operation IN {_OF_ONE_SIZE} THEN a.bytes END AS same_bytes
        FROM ({hidden(COLLECTIVES, COMPUTATION, "rank, device")}) c
        LEFT JOIN collective_args a ON a.event_id = c.id
    ),
    numbered AS (
        SELECT *, row_number() OVER (mine ORDER BY ts_ns, id) AS nth,
               count(*) OVER mine AS rank_calls
        FROM calls WINDOW mine AS (PARTITION BY rank, {_LIKE})
    ),
    compared AS (
        SELECT *, CASE WHEN count(*) OVER same > 1
            AND min(rank_calls) OVER same = max(rank_calls) OVER same
            AND operation NOT IN {_PAIRWISE} THEN min(dur_ns) OVER same END AS shortest_ns,
            max(dur_ns) OVER same AS longest_ns
        FROM numbered WINDOW same AS (PARTITION BY {_LIKE}, nth)
    ),
    grouped AS (
        SELECT rank, device, operation, "group", group_size, dtype, size_bytes,
               count(*) AS calls, sum(size_bytes) AS bytes, sum(dur_ns) AS total_ns,
               round(avg(dur_ns)) AS mean_ns, min(dur_ns) AS min_ns, max(dur_ns) AS max_ns,
               sum(dur_ns - hidden_ns) AS exposed_ns, sum(dur_ns - shortest_ns) AS wait_ns,
               round(avg(longest_ns - shortest_ns)) AS skew_ns,
               mode(algorithm ORDER BY algorithm) AS algorithm
        FROM compared {"WHERE is_recorded" if only_recorded else ""}
        GROUP BY rank, device, operation, "group", group_size, dtype, size_bytes
    )
    SELECT *, 1e9 * bytes / nullif(total_ns, 0) AS algorithm_bytes_per_s,
           1e9 * bytes / nullif(total_ns, 0) * {_BUS_FACTOR} AS bus_bytes_per_s,
           1e9 * size_bytes / nullif(min_ns, 0) * {_BUS_FACTOR} AS fastest_bus_bytes_per_s,
           coalesce(total_ns / nullif(sum(total_ns) OVER (PARTITION BY rank), 0), 0) AS share
    FROM grouped
    """


def run(run: Run, *, all_steps: bool = False, **options: Any) -> duckdb.DuckDBPyRelation:
    """Of steps recorded in full, or with `all_steps` of every collective recorded."""
    prepare_devices(run)
    order = 'total_ns DESC, rank, operation, "group", size_bytes, dtype'
    return declared(run.connection, RESULT, _sql(not all_steps), order, **options)
