"""Functions of jax.jit under XLA's own profiler: for `strobe.profile_compiled`."""

from pathlib import Path
from typing import Any

from strobe.compiled.profile import RUN

FRAMEWORK = "jax"


def is_compiled(function: Any) -> bool:
    """They are of one class, which lives in jaxlib."""
    return type(function).__module__.startswith("jaxlib") and hasattr(function, "lower")


def record(
    function: Any, args: tuple[Any, ...], kwargs: dict[str, Any], repeat: int, folder: Path
) -> Path:
    import jax
    from jax._src.lib import _profiler

    gives_away = _gives_away(function)

    def fresh() -> tuple[Any, Any]:
        """What is donated can be given only once."""
        return _copied((args, kwargs)) if gives_away else (args, kwargs)

    given, named = fresh()
    jax.block_until_ready(function(*given, **named))
    chosen = jax.profiler.ProfileOptions()
    chosen.python_tracer_level = 0
    session = _profiler.ProfilerSession(chosen)
    try:
        for number in range(repeat):
            given, named = jax.block_until_ready(fresh())
            with jax.profiler.TraceAnnotation(f"{RUN}{number}"):
                jax.block_until_ready(function(*given, **named))
    finally:
        recorded = session.stop()
    path = folder / "compiled.xplane.pb"
    path.write_bytes(recorded)
    return path


def _gives_away(function: Any) -> bool:
    known = getattr(function, "_jit_info", None)
    return known is None or bool(known.donate_argnums or known.donate_argnames)


def _copied(tree: Any) -> Any:
    import jax

    return jax.tree.map(lambda leaf: leaf.copy() if isinstance(leaf, jax.Array) else leaf, tree)
