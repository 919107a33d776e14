"""The summary, what a person reads first, as a structure; show/text/summary.py draws it."""

from typing import Any

from strobe.analyse.devices import has_devices
from strobe.analyse.operator_work import prepare_work
from strobe.analyse.recorded import prepare_sums, windows
from strobe.analyse.tables.devices import device_time, kernels
from strobe.analyse.tables.operators import operator_types
from strobe.analyse.tables.steps import counter_statistics, step_statistics, steps
from strobe.analyse.tables.training import metrics
from strobe.model.journal import WRITING_CPU_COUNTER
from strobe.model.manifest import STATES
from strobe.model.metric_tables import AUTOMATIC
from strobe.store.run import Run

TOP_TYPES = 8
TOP_MODULES = 6
TOP_OUTLIERS = 5
TOP_KERNELS = 6
TOP_METRICS = 20


def summarise(run: Run) -> dict[str, Any]:
    steps.prepare(run)
    prepare_sums(run)
    prepare_work(run)
    devices = _devices(run)
    recorded = _recorded(run, devices)
    return {
        "run": _about(run),
        "recorded": recorded,
        "steps": _steps(run),
        "devices": devices,
        "kernels": _kernels(run, devices),
        "operator_types": _operator_types(run, recorded["operator_steps"]),
        "modules": _modules(run, recorded["operator_steps"]),
        "machine": _machine(run),
        "gc": _gc(run),
        "metrics": _metrics(run),
        "problems": _rows(run, "SELECT * FROM problems ORDER BY count DESC, source, what"),
    }


def _metrics(run: Run) -> dict[str, Any]:
    """What the metrics of the first rank that has any came to, the loss first."""
    ((ranks,),) = run.sql("SELECT count(DISTINCT rank) FROM scalars").fetchall()
    if not ranks:
        return {"ranks": 0, "tags": 0, "rows": []}
    found = metrics.run(run)
    rows = [dict(zip(found.columns, row, strict=True)) for row in found.fetchall()]
    rows = [row for row in rows if row["rank"] == rows[0]["rank"]]
    rows.sort(key=_interest)
    return {"ranks": ranks, "tags": len(rows), "rows": rows[:TOP_METRICS]}


def _interest(row: dict[str, Any]) -> tuple[bool, bool, bool, str]:
    """What is looked at first: losses, then what is one word, then the rest by name."""
    tag = row["tag"]
    is_loss = "loss" in tag.lower()
    return (not is_loss, "/" in tag, row["source"] != AUTOMATIC, tag)


def _rows(run: Run, query: str) -> list[dict[str, Any]]:
    relation = run.sql(query)
    names = relation.columns
    return [dict(zip(names, row, strict=True)) for row in relation.fetchall()]


def _about(run: Run) -> dict[str, Any]:
    manifest = run.manifest
    ended = manifest.ended_unix_ns
    frameworks = {name: v for rank in manifest.ranks for name, v in rank.frameworks.items()}
    return {
        "path": str(run.path),
        "command": manifest.command,
        "directory": manifest.directory,
        "recorded_by": manifest.recorded_by,
        "hosts": sorted({rank.host for rank in manifest.ranks} or {manifest.host}),
        "frameworks": frameworks,
        "dur_ns": None if ended is None else ended - manifest.started_unix_ns,
        "state": manifest.state,
        "state_means": STATES.get(manifest.state, manifest.state),
        "exit_code": manifest.exit_code,
        "signal": manifest.signal,
        "ranks": [{"rank": rank.rank, "state": rank.state} for rank in manifest.ranks],
        "world_size": max((rank.world_size or 0 for rank in manifest.ranks), default=0) or None,
    }


def _recorded(run: Run, devices: list[dict[str, Any]]) -> dict[str, Any]:
    (row,) = _rows(
        run,
        f"""
        SELECT (SELECT count(DISTINCT rank) FROM tracks) AS ranks,
               (SELECT count(*) FROM step_times) AS steps,
               (SELECT count(*) FROM step_times WHERE is_recorded) AS steps_in_full,
               (SELECT count(*) FROM ({windows("outline")})) AS windows,
               (SELECT count(*) FROM events) AS events,
               (SELECT coalesce(sum(calls), 0)::BIGINT FROM op_sums) AS operators
        """,
    )
    row["reasons"] = _reasons(run)
    row["cost"] = _cost(run)
    # Times of operators, modules and kernels are divided by this for times per step.
    row["operator_steps"] = row["steps_in_full"] or _device_steps(devices) or _operator_steps(run)
    if run.manifest.recorded_by == "strobe import" and not row["windows"]:
        row["steps_in_full"] = _steps_with_work(run)
    return row


def _cost(run: Run) -> dict[str, Any]:
    """The cost of recording, over all ranks: time of steps spent in the recorder, extra time of
    steps recorded in full, and CPU time of writing windows in the background.
    """
    (row,) = _rows(
        run,
        f"""
        WITH usual AS (
            SELECT rank, median(dur_ns) AS ns FROM step_times
            WHERE NOT is_slowed AND step > {steps.WARM_UP_STEPS}
            GROUP BY rank HAVING count(*) >= {steps.ENOUGH_STEPS}
        )
        SELECT coalesce(sum(recorder_ns), 0)::BIGINT AS recorder_ns,
               coalesce(sum(greatest(0, dur_ns - recorder_ns - ns))
                        FILTER (is_recorded AND NOT is_outlier), 0)::BIGINT AS slowed_ns,
               coalesce(sum(dur_ns), 0)::BIGINT AS steps_ns,
               (SELECT coalesce(sum(ns), 0)::BIGINT FROM (
                   SELECT max(value) AS ns FROM counters WHERE name = '{WRITING_CPU_COUNTER}'
                   GROUP BY rank
               )) AS writing_cpu_ns
        FROM step_times LEFT JOIN usual USING (rank)
        """,
    )
    return row


def _steps_with_work(run: Run) -> int:
    """Steps of an imported trace, which has all operators and kernels of its steps."""
    ((count,),) = run.sql("""
        SELECT count(DISTINCT (t.rank, e.step)) FROM events e JOIN tracks t ON t.id = e.track_id
        WHERE e.step IS NOT NULL AND e.kind IN ('op', 'kernel')
    """).fetchall()
    return int(count)


def _reasons(run: Run) -> list[str]:
    """Why windows were requested while training ran, each reason once."""
    found = run.sql("""
        SELECT reason, min(ts_ns) FROM (
            SELECT regexp_extract(name, '^strobe window \\d+: (.*)$', 1, 's') AS reason, ts_ns
            FROM outline WHERE kind = 'annotation'
        ) WHERE reason <> '' GROUP BY reason ORDER BY 2
    """).fetchall()
    return [str(reason) for reason, _ in found]


def _device_steps(devices: list[dict[str, Any]]) -> int:
    """Steps in which devices worked, complete or not."""
    return sum({row["rank"]: row["steps"] for row in devices}.values())


def _operator_steps(run: Run) -> int:
    """Steps in which operators were recorded, complete or not."""
    ((count,),) = run.sql("""
        SELECT count(DISTINCT (t.rank, e.step)) FILTER (e.step IS NOT NULL)
        FROM events e JOIN tracks t ON t.id = e.track_id WHERE e.kind = 'op'
    """).fetchall()
    return int(count)


def _steps(run: Run) -> dict[str, Any]:
    query = step_statistics.sql(rank="0")
    parts = _rows(run, f"SELECT * EXCLUDE rank FROM ({query}) ORDER BY {step_statistics.POSITION}")
    for part in parts:
        for name in ("mean_ns", "median_ns", "p95_ns", "deviation_ns"):
            part[name] = None if part[name] is None else int(part[name])
    outliers = _rows(
        run,
        "SELECT rank, step, dur_ns FROM step_times "
        "WHERE is_outlier AND NOT is_slowed ORDER BY dur_ns DESC",
    )
    (left_out,) = _rows(
        run,
        """
        SELECT count(*) FILTER (NOT is_counted AND is_slowed) AS slowed,
               count(*) FILTER (NOT is_counted AND NOT is_slowed) AS warm_up,
               count(*) FILTER (is_counted AND is_slowed) AS counted_slowed
        FROM step_times
        """,
    )
    counted_slowed = left_out.pop("counted_slowed")
    return {
        "count": parts[0]["steps"] if parts else 0,
        "left_out": left_out,
        "counted_slowed": counted_slowed,
        "rank_count": len(run.manifest.ranks),
        "parts": parts,
        "outlier_count": len(outliers),
        "outliers": outliers[:TOP_OUTLIERS],
    }


def _devices(run: Run) -> list[dict[str, Any]]:
    """For each device its time in steps, or the whole recording if it has no steps."""
    if not has_devices(run):
        return []
    relation = device_time.run(run)
    return _rows(
        run,
        f"""
        WITH times AS MATERIALIZED ({relation.sql_query()})
        SELECT rank, device, count(step) AS steps, sum(dur_ns)::BIGINT AS dur_ns,
               sum(compute_ns)::BIGINT AS compute_ns,
               sum(communication_ns)::BIGINT AS communication_ns,
               sum(memory_ns)::BIGINT AS memory_ns, sum(idle_ns)::BIGINT AS idle_ns
        FROM times WHERE step IS NOT NULL
            OR (rank, device) NOT IN (SELECT (rank, device) FROM times WHERE step IS NOT NULL)
        GROUP BY rank, device ORDER BY rank, device
        """,
    )


def _kernels(run: Run, devices: list[dict[str, Any]]) -> list[dict[str, Any]]:
    if not devices:
        return []
    step_count = _device_steps(devices)
    relation = kernels.run(run)
    return _rows(
        run,
        f"""
        SELECT name, kind, sum(calls)::BIGINT AS calls, sum(total_ns)::BIGINT AS total_ns,
               {step_count} AS steps,
               (sum(total_ns) // {max(1, step_count)})::BIGINT AS ns_per_step,
               coalesce(sum(total_ns) / nullif(sum(sum(total_ns)) OVER (), 0), 0) AS share,
               arg_max(operator, total_ns) AS operator
        FROM ({relation.sql_query()}) GROUP BY name, kind
        ORDER BY total_ns DESC, name LIMIT {TOP_KERNELS}
        """,
    )


# Over all ranks: device time where a rank has a device, otherwise self time.
_WHOLE = """(
    SELECT sum(coalesce(d.recorded_ns, o.self_ns)) FROM (
        SELECT rank, sum(self_ns) AS self_ns FROM op_sums WHERE is_recorded GROUP BY rank
    ) o FULL JOIN device_wholes d USING (rank)
)"""


def _operator_types(run: Run, step_count: int) -> list[dict[str, Any]]:
    relation = operator_types.run(run)
    return _rows(
        run,
        f"""
        SELECT name, sum(calls)::BIGINT AS calls, sum(device_ns)::BIGINT AS device_ns,
               sum(total_ns)::BIGINT AS total_ns, sum(self_ns)::BIGINT AS self_ns,
               {_per_step("sum(device_ns)", step_count)} AS device_ns_per_step,
               {_per_step("sum(self_ns)", step_count)} AS self_ns_per_step,
               coalesce(sum(coalesce(device_ns, self_ns)) / nullif({_WHOLE}, 0), 0) AS share
        FROM ({relation.sql_query()}) GROUP BY name
        ORDER BY device_ns DESC NULLS LAST, self_ns DESC, name LIMIT {TOP_TYPES}
        """,
    )


def _per_step(time: str, step_count: int) -> str:
    return f"({time} // {max(1, step_count)})::BIGINT"


def _modules(run: Run, step_count: int) -> list[dict[str, Any]]:
    """By the time of a module's own operators; otherwise the outermost would always be first."""
    return _rows(
        run,
        f"""
        WITH called AS (
            SELECT scope, arg_max(name, calls) AS class, sum(calls)::BIGINT AS calls
            FROM module_sums WHERE is_recorded GROUP BY scope
        ),
        host AS (
            SELECT scope, coalesce(sum(self_ns) FILTER (NOT is_backward), 0)::BIGINT
                       AS forward_own_ns,
                   coalesce(sum(self_ns) FILTER (is_backward), 0)::BIGINT AS backward_own_ns,
                   sum(self_ns)::BIGINT AS own_ns
            FROM op_sums WHERE is_recorded GROUP BY scope
        ),
        device AS (
            SELECT scope, sum(device_ns)::BIGINT AS work_ns
            FROM device_sums JOIN device_wholes USING (rank) WHERE is_recorded GROUP BY scope
        ),
        own AS (
            SELECT scope, coalesce(forward_own_ns, 0) AS forward_own_ns,
                   coalesce(backward_own_ns, 0) AS backward_own_ns, coalesce(own_ns, 0) AS own_ns,
                   CASE WHEN EXISTS (FROM device_wholes) THEN coalesce(work_ns, 0) END
                       AS device_own_ns
            FROM host FULL JOIN device USING (scope)
        )
        SELECT scope, class, coalesce(calls, 0) AS calls, device_own_ns, forward_own_ns,
               backward_own_ns, own_ns,
               {_per_step("device_own_ns", step_count)} AS device_own_ns_per_step,
               {_per_step("own_ns", step_count)} AS own_ns_per_step,
               coalesce(coalesce(device_own_ns, own_ns) / nullif({_WHOLE}, 0), 0) AS share
        FROM own LEFT JOIN called USING (scope)
        WHERE coalesce(device_own_ns, own_ns) > 0 AND scope IS NOT NULL
        ORDER BY device_own_ns DESC NULLS LAST, own_ns DESC, scope LIMIT {TOP_MODULES}
        """,
    )


def _machine(run: Run) -> dict[str, Any]:
    """Sums over ranks for what processes use, averages for what belongs to the machine."""
    relation = counter_statistics.run(run)
    rows = _rows(run, relation.sql_query())
    by_name: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        by_name.setdefault(row["name"], []).append(row)

    def total(name: str, figure: str) -> float | None:
        values = [row[figure] for row in by_name.get(name, []) if row[figure] is not None]
        return sum(values) if values else None

    def average(name: str) -> float | None:
        rows = by_name.get(name, [])
        whole = total(name, "mean")
        return None if whole is None else whole / len(rows)

    process_ns = total("process_cpu_ns_total", "mean")
    machine_milli = average("cores_busy_milli")
    cores = {
        int(name.split("_")[1]): (average(name) or 0) / 1000
        for name in by_name
        if name.startswith("core_") and name.endswith("_busy_permille")
    }
    return {
        "process_cores": None if process_ns is None else process_ns / 1e9,
        "machine_cores": None if machine_milli is None else machine_milli / 1000,
        "core_count": len(cores) or None,
        "core_busy_ratios": [cores[core] for core in sorted(cores)],
        "rss_last_bytes": total("rss_bytes", "last"),
        "rss_max_bytes": total("rss_bytes", "max"),
        "page_faults_per_s": total("page_faults_total", "mean"),
        "major_page_faults_per_s": total("page_faults_major_total", "mean"),
        "context_switches_per_s": total("context_switches_total", "mean"),
    }


def _gc(run: Run) -> dict[str, Any]:
    (row,) = _rows(
        run,
        """SELECT count(*) AS pauses, coalesce(sum(dur_ns), 0)::BIGINT AS total_ns,
                  coalesce(max(dur_ns), 0) AS longest_ns
           FROM outline WHERE kind = 'gc'""",
    )
    return row
