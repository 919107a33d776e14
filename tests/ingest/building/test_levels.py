import numpy as np

from strobe.ingest.building.levels import levels
from strobe.ingest.trace.spans import Vocabulary


def test_the_last_value_of_a_moment_holds():
    words = Vocabulary()
    found = levels(words, "x_bytes", np.array([1, 1, 2, 5, 5]), np.array([10, 20, 30, 40, 50]))
    assert found.ts_ns.tolist() == [1, 2, 5] and found.value.tolist() == [20, 30, 50]
    assert list(words.names) == ["x_bytes"]
    assert len(levels(words, "x_bytes", np.zeros(0), np.zeros(0)).ts_ns) == 0
