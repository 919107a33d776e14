"""Data from a library's own iterator, of which only the waits are known: grain, tf.data."""

from strobe.advise.fixes import fix
from strobe.advise.framework import FRAMEWORKS
from strobe.advise.loader import Loader
from strobe.advise.queue_pipeline import Slowest
from strobe.advise.seen import WAITING_CPU_RATIO, cpu_ratio
from strobe.advise.training import Training

_NAMES = {"grain": "grain", "tensorflow": "tf.data"}
# What makes batches ahead of a training with each framework.
LOADERS = {framework: fix("loader", framework) for framework in FRAMEWORKS}


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
        f"{name} makes its batches in the training thread itself"
        if is_own
        else f"{name} makes its batches too slowly"
    )
    at = f" at {where}" if where else ""
    fixes = _of_grain(at) if package == "grain" else _of_tensorflow(at)
    return Slowest("workers", why, fixes, where)


def _of_grain(at: str) -> tuple[str, ...]:
    return (
        "grain.DataLoader(..., worker_count=2), or dataset.mp_prefetch("
        f"grain.MultiprocessingOptions(num_workers=2)){at}: processes make batches ahead while "
        "training computes",
        "where reading waits for a disk or a network, grain.ReadOptions(num_threads=32, "
        "prefetch_buffer_size=1000) reads more at once",
    )


def _of_tensorflow(at: str) -> tuple[str, ...]:
    return (
        f"dataset.prefetch(tf.data.AUTOTUNE) at the end of the pipeline{at}, and "
        "num_parallel_calls=tf.data.AUTOTUNE in its map: batches are made ahead while training "
        "computes",
        "Python in tf.py_function, tf.numpy_function or from_generator runs one call at a time: "
        "write it with TensorFlow's operators, or store its results",
    )
