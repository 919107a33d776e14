"""Which modules of the model cost most, in its own tree?

A module's device time is that of the kernels that its operators launched, and its operator time is
their self time on the host. Both include the modules inside it, so a module has exactly the sum of
its operators. Shares are of device time where the rank has a device. `forward_ns` is the wall time
of its calls, Python included. Containers that are never called (ModuleList) complete the tree,
without a class.
"""

from typing import Any

import duckdb

from strobe.analyse.operator_work import prepare_work
from strobe.analyse.recorded import in_recorded_steps, prepare_sums
from strobe.analyse.select import declared, is_within
from strobe.analyse.tables.operators.operators import SHARE_DOC
from strobe.model.schema import Column, Table
from strobe.store.run import Run

NAME = "modules"

RESULT = Table(
    NAME,
    "Which modules of the model cost most, in its own tree?",
    (
        Column("rank", "i64", "Rank of the process."),
        Column("scope", "str", "Full path of the module."),
        Column(
            "class", "str", "Its class; null for a container that is never called.", nullable=True
        ),
        Column("depth", "i64", "Depth in the tree; the outermost is 0."),
        Column("calls", "i64", "Number of forward calls."),
        Column(
            "device_ns",
            "i64",
            "Device time of its kernels, modules inside included.",
            nullable=True,
        ),
        Column("device_own_ns", "i64", "Device time of its own kernels.", nullable=True),
        Column("forward_device_ns", "i64", "Part of device_ns in forward passes.", nullable=True),
        Column("backward_device_ns", "i64", "Part of device_ns in backward passes.", nullable=True),
        Column("forward_ns", "i64", "Wall time of the forward calls."),
        Column("forward_exclusive_ns", "i64", "The same, without the modules it called."),
        Column(
            "forward_operators_ns",
            "i64",
            "Self time of forward operators, modules inside included.",
        ),
        Column("forward_own_ns", "i64", "Self time of its own forward operators."),
        Column(
            "backward_operators_ns",
            "i64",
            "Self time of backward operators, modules inside included.",
        ),
        Column("backward_own_ns", "i64", "Self time of its own backward operators."),
        Column("operators_ns", "i64", "Self time of all operators, modules inside included."),
        Column("share", "f64", SHARE_DOC),
    ),
)

# The innermost module call around each module call, skipping whatever is between them.
_CALLS = """
    calls AS (
        SELECT t.rank, e.id, e.scope, e.name, e.dur_ns, e.parent_id
        FROM events e JOIN tracks t ON t.id = e.track_id
        WHERE e.kind = 'module' AND e.scope IS NOT NULL AND {condition}
    ),
    climb(id, ancestor_id, is_module) AS (
        SELECT c.id, p.id, p.kind = 'module' FROM calls c JOIN events p ON p.id = c.parent_id
        UNION ALL
        SELECT climb.id, p.id, p.kind = 'module'
        FROM climb JOIN events e ON e.id = climb.ancestor_id JOIN events p ON p.id = e.parent_id
        WHERE NOT climb.is_module
    ),
    inner_ns AS (
        SELECT climb.ancestor_id AS id, sum(c.dur_ns) AS dur_ns
        FROM climb JOIN calls c ON c.id = climb.id WHERE climb.is_module GROUP BY 1
    ),
    called AS (
        SELECT rank, scope, mode(name ORDER BY name) AS class, count(*) AS calls,
               sum(c.dur_ns) AS forward_ns,
               sum(c.dur_ns - coalesce(i.dur_ns, 0)) AS forward_exclusive_ns
        FROM calls c LEFT JOIN inner_ns i USING (id) GROUP BY rank, scope
    )
"""
_SQL = f"""
    WITH RECURSIVE {_CALLS},
    spent AS (
        SELECT rank, scope, is_backward, self_ns, 0::BIGINT AS device_ns
        FROM op_sums WHERE is_recorded
        UNION ALL
        SELECT rank, scope, is_backward, 0::BIGINT, device_ns FROM device_sums WHERE is_recorded
    ),
    own AS (
        SELECT rank, scope,
               coalesce(sum(self_ns) FILTER (NOT is_backward), 0) AS forward_own_ns,
               coalesce(sum(self_ns) FILTER (is_backward), 0) AS backward_own_ns,
               coalesce(sum(device_ns) FILTER (NOT is_backward), 0) AS forward_device_own_ns,
               coalesce(sum(device_ns) FILTER (is_backward), 0) AS backward_device_own_ns
        FROM spent WHERE scope IS NOT NULL GROUP BY rank, scope
    ),
    written AS (SELECT rank, scope FROM called UNION SELECT rank, scope FROM own),
    paths AS (
        SELECT rank, scope FROM written
        UNION
        SELECT rank, array_to_string(parts[:n], '.') FROM (
            SELECT rank, parts, unnest(range(1, len(parts))) AS n
            FROM (SELECT rank, string_split(scope, '.') AS parts FROM written WHERE scope <> '')
        )
    ),
    roots AS (SELECT rank, bool_or(scope = '') AS is_empty FROM paths GROUP BY rank),
    below AS (
        SELECT p.rank, p.scope, sum(o.forward_own_ns) AS forward_operators_ns,
               sum(o.backward_own_ns) AS backward_operators_ns,
               sum(o.forward_device_own_ns) AS forward_work_ns,
               sum(o.backward_device_own_ns) AS backward_work_ns
        FROM paths p JOIN own o ON o.rank = p.rank AND {is_within("o.scope", "p.scope")}
        GROUP BY p.rank, p.scope
    ),
    totals AS (SELECT rank, sum(self_ns) AS self_ns FROM spent GROUP BY rank),
    times AS (
        SELECT p.rank, p.scope, c.class,
               CASE WHEN p.scope = '' THEN 0
                    ELSE len(string_split(p.scope, '.')) - 1 + r.is_empty::INT END AS depth,
               coalesce(c.calls, 0) AS calls, coalesce(c.forward_ns, 0) AS forward_ns,
               coalesce(c.forward_exclusive_ns, 0) AS forward_exclusive_ns,
               coalesce(b.forward_operators_ns, 0) AS forward_operators_ns,
               coalesce(o.forward_own_ns, 0) AS forward_own_ns,
               coalesce(b.backward_operators_ns, 0) AS backward_operators_ns,
               coalesce(o.backward_own_ns, 0) AS backward_own_ns,
               coalesce(b.forward_operators_ns + b.backward_operators_ns, 0) AS operators_ns,
               d.recorded_ns AS whole_ns, t.self_ns AS whole_self_ns,
               CASE WHEN whole_ns IS NOT NULL THEN coalesce(b.forward_work_ns, 0) END
                   AS forward_device_ns,
               CASE WHEN whole_ns IS NOT NULL THEN coalesce(b.backward_work_ns, 0) END
                   AS backward_device_ns,
               CASE WHEN whole_ns IS NOT NULL
                    THEN coalesce(o.forward_device_own_ns + o.backward_device_own_ns, 0) END
                   AS device_own_ns,
               forward_device_ns + backward_device_ns AS device_ns
        FROM paths p JOIN roots r USING (rank)
        LEFT JOIN called c USING (rank, scope)
        LEFT JOIN own o USING (rank, scope)
        LEFT JOIN below b USING (rank, scope)
        LEFT JOIN totals t USING (rank)
        LEFT JOIN device_wholes d USING (rank)
    )
    SELECT *, coalesce(coalesce(device_ns, operators_ns)
                       / nullif(coalesce(whole_ns, whole_self_ns), 0), 0) AS share
    FROM times
"""
# layers.2 before layers.10: compare runs of digits as numbers.
_TREE_ORDER = r"""rank, list_transform(string_split(scope, '.'), lambda part:
    CASE WHEN regexp_full_match(part, '\d{1,18}') THEN lpad(part, 18, '0') ELSE part END)"""


def run(run: Run, **options: Any) -> duckdb.DuckDBPyRelation:
    prepare_sums(run)
    prepare_work(run)
    query = _SQL.format(condition=in_recorded_steps("t.rank", "e.step"))
    return declared(run.connection, RESULT, query, _TREE_ORDER, **options)
