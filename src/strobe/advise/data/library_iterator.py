"""Data from the iterator of a library, of which only the waits are known."""

from strobe.advise.data.loader import Loader
from strobe.advise.data.queue_pipeline import Slowest
from strobe.advise.evidence.stack_lines import WAITING_CPU_RATIO, cpu_ratio
from strobe.advise.fixes import at_line
from strobe.advise.training import Training
from strobe.frameworks import FRAMEWORKS
from strobe.messages import message

# The number of workers that the fix sets.
_WORKERS = 2

_ITERATORS = {name: one for framework in FRAMEWORKS for name, one in framework.iterators.items()}


def of_library(training: Training, loader: Loader) -> Slowest | None:
    """Why it is late and what helps; None if the loader is not one of these."""
    library = _ITERATORS.get(loader.settings.get("library", ""))
    if library is None:
        return None
    on_core = cpu_ratio(training, ("gap",))
    is_own = on_core is not None and on_core >= WAITING_CPU_RATIO
    id = "library-in-training-thread" if is_own else "library-too-slow"
    why = message(f"data-starvation.{id}", library=library.title)
    values = {"workers": _WORKERS, "at": at_line(loader.place)}
    fixes = tuple(message(f"data-starvation.{id}", **values) for id in library.fixes)
    made_ns = loader.waited_ns / max(1, loader.steps) if is_own else loader.step_ns
    recovered = loader.recovered_by(made_ns, _WORKERS, computes=is_own)
    return Slowest("workers", why, fixes, loader.place, recovered)
