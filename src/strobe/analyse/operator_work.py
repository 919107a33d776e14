"""The device time of each operator, and its floating-point operations, prepared for queries.

An operator's device time is that of the kernels, copies, fills and collectives that it launched
itself; its total includes those of the operators inside it. Where a rank has such work, time means
device time: shares and rankings use `device_ns`, rates use `device_total_ns`. Where no device work
can be attributed, they use host time.

FLOPs are counted once, on the operator inside a call that does most of the work: aten::convolution
delegates to aten::mkldnn_convolution or aten::cudnn_convolution.
"""

import numpy as np

from strobe.analyse.devices import prepare_devices
from strobe.analyse.recorded import (
    Array,
    in_recorded_steps,
    nearest,
    places,
    prepare_self_times,
)
from strobe.store.run import Run

# Every operator that has FLOPs or launched work, with everything that ran inside it.
_OP_WORK = f"""
    SELECT t.rank, e.name, {in_recorded_steps("t.rank", "e.step")} AS is_recorded, w.*
    FROM op_amounts w JOIN events e ON e.id = w.id JOIN tracks t ON t.id = e.track_id
"""

_AMOUNTS = """
    WITH launched AS (
        SELECT coalesce(m.into_id, w.operator_id) AS id, sum(w.dur_ns) AS device_ns
        FROM device_work w LEFT JOIN merged_ops m ON m.id = w.operator_id
        WHERE w.operator_id IS NOT NULL GROUP BY 1
    )
    SELECT s.id, s.around_id, s.self_ns, coalesce(l.device_ns, 0) AS device_ns,
           coalesce(a.flops, -1) AS flops
    FROM self_times s LEFT JOIN launched l USING (id) LEFT JOIN op_args a ON a.event_id = s.id
    ORDER BY s.id
"""

# All device time of a rank, where any of it can be attributed; shares are relative to it.
_WHOLE = """
    SELECT rank, sum(dur_ns) AS all_ns, sum(dur_ns) FILTER (is_recorded) AS recorded_ns
    FROM device_work GROUP BY rank HAVING count(operator_id) + count(scope) > 0
"""

# By operator and module; work that no operator launched has no name.
_SUMS = """
    SELECT w.rank, w.operator AS name, w.scope, w.is_recorded,
           coalesce(a.is_backward, false) AS is_backward, sum(w.dur_ns)::BIGINT AS device_ns
    FROM device_work w LEFT JOIN op_args a ON a.event_id = coalesce(w.operator_id, w.id)
    GROUP BY ALL
"""


def prepare_work(run: Run) -> None:
    """Create `op_work`, `device_sums` and `device_wholes` in the run's connection, once."""
    prepare_devices(run)
    prepare_self_times(run)
    if not run.has("op_amounts"):
        found = run.sql(_AMOUNTS).fetchnumpy()
        column = {name: np.asarray(values) for name, values in found.items()}
        run.keep("op_amounts", amounts(**column))
    run.make("op_work", _OP_WORK)
    run.make("device_sums", _SUMS)
    run.make("device_wholes", _WHOLE)


def amounts(
    id: Array, around_id: Array, self_ns: Array, device_ns: Array, flops: Array
) -> dict[str, Array]:
    """Columns id, device_ns, device_total_ns and flops of operators that have any of them.

    Ids ascend; -1 is none. FLOPs go to the inner operator that has more than half of the work:
    device time if there is any, otherwise self time.
    """
    around = places(id, around_id)
    total_ns = _with_inner(device_ns, around)
    has_flops = flops >= 0
    source = nearest(has_flops, around)
    inside = np.flatnonzero(source >= 0)
    work_ns = np.where(total_ns[source] > 0, device_ns, self_ns)
    done_ns = np.zeros(len(id), dtype=np.int64)
    np.add.at(done_ns, source[inside], work_ns[inside])
    most = inside[2 * work_ns[inside] > done_ns[source[inside]]]
    place = np.arange(len(id))
    place[source[most]] = most
    moved = np.full(len(id), -1, dtype=np.int64)
    givers = np.flatnonzero(has_flops)
    moved[place[givers]] = flops[givers]
    kept = np.flatnonzero((total_ns > 0) | has_flops | (moved >= 0))
    return {
        "id": id[kept], "device_ns": device_ns[kept], "device_total_ns": total_ns[kept],
        "flops": np.ma.masked_less(moved[kept], 0),
    }  # fmt: skip


def _with_inner(own_ns: Array, around: Array) -> Array:
    """For each operator, the sum of its own value and those of all operators inside it."""
    total_ns = own_ns.copy()
    adding = np.flatnonzero(own_ns > 0)
    at = around[adding]
    while (above := at >= 0).any():
        adding, at = adding[above], at[above]
        np.add.at(total_ns, at, own_ns[adding])
        at = around[at]
    return total_ns
