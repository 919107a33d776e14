"""Data loaders that start again and again: workers per epoch, iterators per batch."""

from strobe.advise.data import pipeline_model
from strobe.advise.data.cause import Cause, at_line
from strobe.advise.data.loader import Loader
from strobe.units import duration

# Slow first steps of an epoch are named if they cost this part of step time.
WORTH_TELLING_RATIO = 0.05

# What new workers prepare is named if it takes this part of a restart.
PREPARING_RATIO = 0.25

# Where a pipeline's own work is not known, the part of the waiting that ends if its iterator stays:
# at least, as a rule, at most.
_KEPT_ITERATOR = (0.3, 0.7, 0.95)


def restarted(loader: Loader) -> Cause:
    """Workers are restarted for every pass over the data."""
    each = duration(loader.restarts_ns / max(1, loader.passes))
    why = f"The workers are restarted for every epoch, which takes {each} each time"
    beyond = loader.first_steps_ns / max(1.0, loader.total_ns)
    if beyond >= WORTH_TELLING_RATIO:
        later = duration(loader.first_steps_ns / max(1, loader.passes))
        why += f" and slows the first step after it by {later}"
    if loader.preparing_ns >= PREPARING_RATIO * loader.restarts_ns:
        preparing = duration(loader.preparing_ns / max(1, loader.passes))
        why += f". New workers spend {preparing} of that on preparing their first batch"
    fixes = [f"Set persistent_workers=True on the DataLoader{at_line(loader.place)}"]
    if loader.settings.get("start_method") != "fork":
        fixes.append("Where it is safe, start them with 'fork', which imports nothing again")
    recovered = loader.restarts_ns / max(1, loader.lost_ns)
    return Cause("restarts", why, min(1.0, recovered), tuple(fixes), loader.place, beyond=beyond)


def recreated(loader: Loader) -> Cause | None:
    """A new iterator is made for every batch: what it prepares in advance is thrown away."""
    least, recovered, most = _KEPT_ITERATOR
    bounds: tuple[float, float] | None = (least, most)
    waited_ns = loader.waited_ns / max(1, loader.batches)
    if loader.works:
        trained_ns = loader.trained_ns / max(1, loader.batches)
        after_ns = pipeline_model.run(loader.works, loader.setting()).batch_ns
        recovered = min(1.0, max(0.0, 1 - (after_ns - trained_ns) / max(1.0, waited_ns)))
        bounds = None
        if recovered < least:
            return None
    why = (
        f"A new iterator is created for every batch, which takes {duration(waited_ns)} each time; "
        "what it prepares in advance is thrown away"
    )
    advice = (
        "Create the iterator once, before the loop, and take the next batch from it"
        f"{at_line(loader.place)}; create it again only when it is exhausted"
    )
    return Cause("restarts", why, recovered, (advice,), loader.place, 0.0, bounds)
