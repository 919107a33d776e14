"""Data loaders that start again and again: workers per epoch, or an iterator per batch."""

from strobe.advise.data import pipeline_model
from strobe.advise.data.cause import Cause
from strobe.advise.data.loader import Loader
from strobe.advise.fixes import at_line, fix
from strobe.advise.thresholds import SMALLEST_SHARE
from strobe.advise.training import Training
from strobe.messages import Message, message
from strobe.units import duration

# What new workers prepare is reported if it takes at least this part of a restart.
PREPARING_RATIO = 0.25

# The part of the waiting that an iterator which is kept removes, where the time to build a batch
# is not known: at least, usually, at most.
_RECOVERED_BY_ONE_ITERATOR = (0.3, 0.7, 0.95)


def restarted(training: Training, loader: Loader) -> Cause:
    """Workers are restarted for every pass over the data."""
    beyond = loader.first_steps_ns / max(1.0, loader.total_ns)
    fixes = [fix("persistent-workers", training.framework, loader.place)]
    if loader.settings.get("start_method") != "fork":
        fixes.append(message("data-starvation.fork-workers"))
    recovered = min(1.0, loader.restarts_ns / max(1, loader.lost_ns))
    why = _why_restarted(loader, beyond)
    return Cause("restarts", why, recovered, tuple(fixes), loader.place, beyond=beyond)


def _why_restarted(loader: Loader, beyond: float) -> Message:
    passes = max(1, loader.passes)
    each = duration(loader.restarts_ns / passes)
    if beyond >= SMALLEST_SHARE:
        later = duration(loader.first_steps_ns / passes)
        why = message("data-starvation.restarted-slow-step", each=each, later=later)
    else:
        why = message("data-starvation.restarted", each=each)
    if loader.preparing_ns < PREPARING_RATIO * loader.restarts_ns:
        return why
    preparing = duration(loader.preparing_ns / passes)
    return message("data-starvation.restarted-preparing", restarted=why, preparing=preparing)


def recreated(loader: Loader) -> Cause | None:
    """A new iterator is created for every batch, and what it prepared in advance is discarded.
    None if one iterator for all batches would gain too little."""
    least, recovered, most = _RECOVERED_BY_ONE_ITERATOR
    bounds: tuple[float, float] | None = (least, most)
    waited_ns = loader.waited_ns / max(1, loader.batches)
    if loader.works:
        trained_ns = loader.trained_ns / max(1, loader.batches)
        after_ns = pipeline_model.run(loader.works, loader.setting()).batch_ns
        recovered = min(1.0, max(0.0, 1 - (after_ns - trained_ns) / max(1.0, waited_ns)))
        bounds = None
        if recovered < least:
            return None
    why = message("data-starvation.recreated", each=duration(waited_ns))
    advice = message("data-starvation.keep-iterator", at=at_line(loader.place))
    return Cause("restarts", why, recovered, (advice,), loader.place, 0.0, bounds)
