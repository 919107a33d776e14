"""Data from a library's own iterator, of which only the waits are known: grain, tf.data."""

from strobe.advise.data.loader import Loader
from strobe.advise.data.queue_pipeline import Slowest
from strobe.advise.evidence.stack_lines import WAITING_CPU_RATIO, cpu_ratio
from strobe.advise.training import Training

# Workers that are advised.
_WORKERS = 2

_NAMES = {"grain": "grain", "tensorflow": "tf.data"}


def of_library(training: Training, loader: Loader) -> Slowest | None:
    """Why it is late and what helps; None if this is no such loader."""
    package = loader.settings.get("library")
    if package not in _NAMES:
        return None
    name = _NAMES[package]
    on_core = cpu_ratio(training, ("gap",))
    is_own = on_core is not None and on_core >= WAITING_CPU_RATIO
    where = str(loader.line) if loader.line else None
    why = (
        f"{name} prepares its batches in the training thread"
        if is_own
        else f"{name} prepares its batches too slowly"
    )
    at = f" at {where}" if where else ""
    fixes = _of_grain(at) if package == "grain" else _of_tensorflow(at)
    made_ns = loader.waited_ns / max(1, loader.steps) if is_own else loader.step_ns
    recovered = loader.recovered_by(made_ns, _WORKERS, computes=is_own)
    return Slowest("workers", why, fixes, where, recovered)


def _of_grain(at: str) -> tuple[str, ...]:
    return (
        f"Set worker_count={_WORKERS} on grain.DataLoader, or mp_prefetch("
        f"grain.MultiprocessingOptions(num_workers={_WORKERS})) on the dataset{at}",
        "If reading waits for a disk or a network, set grain.ReadOptions(num_threads=32, "
        "prefetch_buffer_size=1000)",
    )


def _of_tensorflow(at: str) -> tuple[str, ...]:
    return (
        f"Add prefetch(tf.data.AUTOTUNE) at the end of the pipeline{at}, and "
        "num_parallel_calls=tf.data.AUTOTUNE to its map",
        "Python in tf.py_function, tf.numpy_function or from_generator runs one call at a time: "
        "write it with TensorFlow's operators, or store its results",
    )
