"""Every wait for data, with the batches ready when it began and the batch that ended it.

A pass is one iteration over a loader; the n-th wait of a pass is for its n-th batch. A wait is a
start if the loader was only getting ready: starting its workers, creating the dataset's iterator.
Where workers build the batches, `on_core_ns` is the CPU time that the wait took the training
thread, to receive the batch and request another, and `no_core_ns` is the time in which the thread
was ready to continue but had no core.
"""

from strobe.analyse import recorded
from strobe.store.run import Run

_SQL = """
    WITH named AS (
        SELECT rank, id, ts_ns, end_ns, dur_ns, step,
               coalesce(try_cast(regexp_extract(name, '^loader (\\d+): ', 1) AS BIGINT), 0)
                   AS loader,
               ends_with(name, ', starting') AS is_start
        FROM outline WHERE kind = 'data'
    ),
    passes AS (
        SELECT rank, loader, ts_ns,
               row_number() OVER (PARTITION BY rank, loader ORDER BY ts_ns) AS pass
        FROM named WHERE is_start
    ),
    waits AS (
        SELECT n.*, coalesce(p.pass, 0) AS pass, row_number() OVER (
                   PARTITION BY n.rank, n.loader, p.pass, n.is_start ORDER BY n.ts_ns
               ) AS number
        FROM named n
        ASOF LEFT JOIN passes p
            ON p.rank = n.rank AND p.loader = n.loader AND p.ts_ns <= n.ts_ns
    ),
    made AS (
        SELECT b.*, coalesce(p.pass, 0) AS pass, row_number() OVER (
                   PARTITION BY b.rank, b.loader, p.pass ORDER BY b.batch, b.ts_ns
               ) AS number
        FROM batches b
        ASOF LEFT JOIN passes p
            ON p.rank = b.rank AND p.loader = b.loader AND p.ts_ns <= b.ts_ns
    ),
    lengths AS (
        SELECT w.rank, w.ts_ns,
               max(q.length) FILTER (ends_with(q.name, ' ready batches')) AS ready,
               max(q.length) FILTER (ends_with(q.name, ' pinned')) AS pinned,
               sum(q.length) FILTER (ends_with(q.name, ' orders')) AS orders
        FROM queues q
        ASOF JOIN named w ON w.rank = q.rank AND w.ts_ns <= q.ts_ns
        WHERE q.ts_ns <= w.end_ns
        GROUP BY w.rank, w.ts_ns
    ),
    taken AS (
        SELECT w.rank, w.ts_ns,
               max(c.value) FILTER (ends_with(c.name, ' wait_on_core_ns'))::BIGINT AS on_core_ns,
               max(c.value) FILTER (ends_with(c.name, ' no_core_ns'))::BIGINT AS no_core_ns
        FROM (FROM counters WHERE starts_with(name, 'loader ')) c
        ASOF JOIN named w ON w.rank = c.rank AND w.ts_ns <= c.ts_ns
        WHERE c.ts_ns <= w.end_ns
        GROUP BY w.rank, w.ts_ns
    )
    SELECT w.*, k.on_core_ns, k.no_core_ns, l.ready, l.pinned, l.orders, m.worker,
           m.ts_ns AS begun_ns, m.ts_ns + m.fetch_ns + m.collate_ns AS made_ns, m.fetch_ns,
           least(m.fetch_cpu_ns, m.fetch_ns) AS transform_ns,
           CASE WHEN m.fetch_queued_ns IS NULL THEN 0 * m.fetch_ns
                ELSE least(m.fetch_queued_ns, m.fetch_ns - transform_ns) END AS queued_ns,
           m.fetch_ns - transform_ns - queued_ns AS reading_ns, m.collate_ns, m.send_ns
    FROM waits w
    LEFT JOIN lengths l ON l.rank = w.rank AND l.ts_ns = w.ts_ns
    LEFT JOIN taken k ON k.rank = w.rank AND k.ts_ns = w.ts_ns
    LEFT JOIN made m ON NOT w.is_start AND m.rank = w.rank AND m.loader = w.loader
        AND m.pass = w.pass AND m.number = w.number
"""


def prepare(run: Run) -> None:
    """Create `data_waits` in the run's connection, once."""
    recorded.prepare_outline(run)
    run.make("data_waits", _SQL)
