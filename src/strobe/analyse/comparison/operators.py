"""Operators of two runs side by side, per step, matched by module, name and shapes."""

from dataclasses import dataclass

from strobe.analyse.recorded import prepare
from strobe.analyse.tables.operators import operators
from strobe.store.run import Run


@dataclass(frozen=True)
class Operator:
    """One or several equal calls in both runs, per step; 0 where a run has none."""

    part: str  # forward, backward, update, ...
    scope: str | None
    name: str
    shapes: str | None  # null where the shapes of the two runs differ
    calls_a: float
    calls_b: float
    ns_a: float
    ns_b: float

    @property
    def difference_ns(self) -> float:
        return self.ns_b - self.ns_a


Key = tuple[str, str | None, str, str | None]
Sums = dict[Key, tuple[float, float]]


def matched(a: Run, b: Run) -> list[Operator]:
    """Biggest difference first; empty unless both runs have operators."""
    sums_a, sums_b = _sums(a), _sums(b)
    if not sums_a or not sums_b:
        return []
    same = sums_a.keys() & sums_b.keys()
    rest_a = _without_shapes(sums_a, same)
    rest_b = _without_shapes(sums_b, same)
    rows = [_operator(key, sums_a[key], sums_b[key]) for key in same]
    none = (0.0, 0.0)
    rows += [
        _operator(key, rest_a.get(key, none), rest_b.get(key, none))
        for key in rest_a.keys() | rest_b.keys()
    ]
    return sorted(
        rows, key=lambda row: (-abs(row.difference_ns), row.part, row.scope or "", row.name)
    )


def _operator(key: Key, a: tuple[float, float], b: tuple[float, float]) -> Operator:
    part, scope, name, shapes = key
    return Operator(part, scope, name, shapes, a[0], b[0], a[1], b[1])


def _sums(run: Run) -> Sums:
    """Calls and self time per step and rank."""
    count = _steps_counted(run)
    if not count:
        return {}
    # The relation belongs to this run's connection, which is all that its query needs.
    source = operators.run(run).sql_query()
    rows = run.sql(f"""
        SELECT direction, scope, name, input_shapes, sum(calls) / {count}, sum(self_ns) / {count}
        FROM ({source}) GROUP BY ALL
    """).fetchall()
    return {(row[0], row[1], row[2], row[3]): (float(row[4]), float(row[5])) for row in rows}


def _steps_counted(run: Run) -> int:
    """Steps whose operators the analysis counts: those recorded in full, or all steps of a rank."""
    prepare(run)
    ((count,),) = run.sql("""
        SELECT count(*) FROM outline o WHERE kind = 'step' AND step IS NOT NULL AND (
            (rank, step) IN (SELECT rank, step FROM recorded_steps)
            OR rank NOT IN (SELECT rank FROM recorded_steps)
               AND rank IN (SELECT DISTINCT rank FROM op_times))
    """).fetchall()
    return int(count)


def _without_shapes(sums: Sums, known: set[Key]) -> Sums:
    """Matches for the rest: all calls of one module and name together, whatever their shapes."""
    found: Sums = {}
    for key, (calls, ns) in sums.items():
        if key not in known:
            bare = (*key[:3], None)
            before = found.get(bare, (0.0, 0.0))
            found[bare] = (before[0] + calls, before[1] + ns)
    return found
