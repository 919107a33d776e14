"""Counters that are levels: a value is valid from a moment until the next one."""

import numpy as np

from strobe.ingest.trace.codes import Array
from strobe.ingest.trace.spans import Vocabulary
from strobe.ingest.trace.trace import Samples


def levels(words: Vocabulary, name: str, ts_ns: Array, value: Array) -> Samples:
    """For values in order of time: of several at one moment the last one is valid."""
    last = np.append(ts_ns[1:] != ts_ns[:-1], True)[: len(ts_ns)]
    return Samples(ts_ns[last], np.full(int(last.sum()), words.names[name]), value[last])
