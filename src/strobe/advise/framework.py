"""Which framework a run trains with: advice is given in its words, or in neutral ones."""

from strobe.model.schema import COMPILED_PROGRAMS
from strobe.store.run import Run

TORCH, JAX, MINDSPORE, MEGENGINE = "torch", "jax", "mindspore", "megengine"
UNKNOWN = "unknown"
FRAMEWORKS = (TORCH, JAX, MINDSPORE, MEGENGINE, UNKNOWN)

# Packages named in run.json, by the framework they belong to.
_PACKAGES = {
    "torch": TORCH, "torch_npu": TORCH,
    "jax": JAX, "jaxlib": JAX,
    "mindspore": MINDSPORE,
    "megengine": MEGENGINE,
}  # fmt: skip

# Names of events that only one framework writes.
_SIGNS = {
    TORCH: r"^(aten|torch|c10d|autograd)::|^nn\.Module: |^ProfilerStep#",
    JAX: r"^PjitFunction\(|^jit_\w|^jit\(|^XLA (Modules|Ops)$",
    MINDSPORE: r"^Default/|^Gradients/Default/",
}


def framework_of(run: Run) -> str:
    """torch, jax, mindspore, megengine, or UNKNOWN.

    A script may import several: the one whose operators were recorded counts, then the one that
    runs compiled programs, then torch.
    """
    named = {
        _PACKAGES[package]
        for rank in run.manifest.ranks
        for package in rank.frameworks
        if package in _PACKAGES
    }
    if len(named) == 1:
        return named.pop()
    recorded = _by_names(run, named)
    if recorded is not None:
        return recorded
    if named > {TORCH} and _runs_programs(run):
        return min(named - {TORCH})
    return TORCH if TORCH in named else min(named, default=UNKNOWN)


def _by_names(run: Run, named: set[str]) -> str | None:
    """The framework with the most events that only it writes."""
    signs = {name: sign for name, sign in _SIGNS.items() if not named or name in named}
    if not signs:
        return None
    counts = ", ".join(
        f"count(*) FILTER (regexp_matches(text, '{sign}'))" for sign in signs.values()
    )
    (found,) = run.sql(f"""
        SELECT {counts} FROM (
            SELECT name AS text FROM events WHERE kind IN ('op', 'runtime', 'annotation')
            UNION ALL SELECT node FROM op_args WHERE node IS NOT NULL
        )
    """).fetchall()
    best = max(zip(found, signs, strict=True))
    return best[1] if best[0] else None


def _runs_programs(run: Run) -> bool:
    query = "FROM tracks WHERE name = $name LIMIT 1"
    return bool(run.sql(query, {"name": COMPILED_PROGRAMS}).fetchall())
