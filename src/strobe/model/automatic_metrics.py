"""Metrics that are recorded by themselves: what their values are called until the run is read.

While a training runs it is not known whether it has one loss or several. So the recorder writes
everything that may tell them apart, and ingest/recording/automatic.py chooses the names.
"""

from typing import NamedTuple

LOSS, LEARNING_RATE = "loss", "learning_rate"
GRADIENT_NORM, SAMPLES_PER_SECOND = "gradient_norm", "samples_per_second"
EVALUATION = "evaluation"  # with the name of a result: evaluation/accuracy

# Counter: the number of samples in each batch of a loader from here on.
BATCH_SIZE_COUNTER = "loader {} batch_size"

_SEPARATOR = "\t"


class Series(NamedTuple):
    """Where the values of a tag come from: a call in the script, or a group of an optimizer."""

    kind: str
    name: str  # of the variable, or of the group; "" if unknown
    function: str = ""  # that makes the call
    line: int = 0
    optimizer: int = -1  # in order of their first updates, from 0
    group: int = -1

    @property
    def tag(self) -> str:
        return _SEPARATOR.join(str(part) for part in self)


def series_of(tag: str) -> Series | None:
    """None if the tag is complete as it is."""
    parts = tag.split(_SEPARATOR)
    if len(parts) != len(Series._fields):
        return None
    kind, name, function, *numbers = parts
    try:
        line, optimizer, group = map(int, numbers)
    except ValueError:
        return None
    return Series(kind, name, function, line, optimizer, group)
