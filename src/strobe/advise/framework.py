"""Which framework a run trains with: advice is given in its words, or in neutral ones."""

from strobe.frameworks import FRAMEWORKS, TORCH, UNKNOWN, Framework, of_package
from strobe.model.schema import COMPILED_PROGRAMS
from strobe.store.run import Run


def framework_of(run: Run) -> Framework:
    """The framework that trains, or UNKNOWN.

    A script may import several: the one whose operators were recorded counts, then the one that
    runs compiled programs, then torch.
    """
    named = {of_package(package) for rank in run.manifest.ranks for package in rank.frameworks}
    named -= {UNKNOWN}
    if len(named) == 1:
        return named.pop()
    recorded = _by_names(run, named)
    if recorded is not None:
        return recorded
    if named > {TORCH} and _runs_programs(run):
        return _first(named - {TORCH})
    return TORCH if TORCH in named else _first(named)


def _first(named: set[Framework]) -> Framework:
    return min(named, key=lambda one: one.name, default=UNKNOWN)


def _by_names(run: Run, named: set[Framework]) -> Framework | None:
    """The framework with the most events that only it writes."""
    asked = [one for one in FRAMEWORKS if one.events and (not named or one in named)]
    if not asked:
        return None
    counts = ", ".join(f"count(*) FILTER (regexp_matches(text, '{one.events}'))" for one in asked)
    (found,) = run.sql(f"""
        SELECT {counts} FROM (
            SELECT name AS text FROM events WHERE kind IN ('op', 'runtime', 'annotation')
            UNION ALL SELECT node FROM op_args WHERE node IS NOT NULL
        )
    """).fetchall()
    count, _, best = max((count, one.name, one) for count, one in zip(found, asked, strict=True))
    return best if count else None


def _runs_programs(run: Run) -> bool:
    query = "FROM tracks WHERE name = $name LIMIT 1"
    return bool(run.sql(query, {"name": COMPILED_PROGRAMS}).fetchall())
