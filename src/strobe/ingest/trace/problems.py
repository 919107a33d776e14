"""Problems of reading, collected along the way and stored as the table `problems`."""

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from strobe.ingest.trace.codes import Codes, strings


@dataclass
class Problems:
    """Sentences and their counts, by the file or part they come from."""

    counts: Counter[tuple[str, str]] = field(default_factory=Counter)

    def add(self, source: str, what: str, count: int = 1) -> None:
        if count > 0:
            self.counts[source, what] += count

    def update(self, other: "Problems") -> None:
        self.counts.update(other.counts)

    def columns(self, rank: int) -> dict[str, Any]:
        """As columns of the stored table."""
        sources, whats = Codes[str](), Codes[str]()
        size = len(self.counts)
        return {
            "rank": np.full(size, rank, dtype=np.int64),
            "source": strings(sources.of(source for source, _ in self.counts), sources),
            "what": strings(whats.of(what for _, what in self.counts), whats),
            "count": np.fromiter(self.counts.values(), dtype=np.int64, count=size),
        }
