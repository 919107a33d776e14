"""communication.json and communication_matrix.json: collectives, and what their links carried."""

import json
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from strobe.errors import UnreadableTrace
from strobe.ingest.formats import compressed
from strobe.ingest.formats.ascend.numbers import NEVER, moments, scaled
from strobe.ingest.trace.problems import Problems
from strobe.ingest.trace.spans import Vocabulary
from strobe.ingest.trace.trace import Samples

_LARGEST_BYTES = 256 << 20
_BYTES_PER_MB = 10**6  # as CANN counts them here: 8.388608 MB is 8 MiB
_TIMES = {
    "Transit Time(ms)": "transit", "Wait Time(ms)": "wait",
    "Synchronization Time(ms)": "synchronization", "Idle Time(ms)": "idle",
}  # fmt: skip
_SUM_OF_LINKS = "SDMA"  # of HCCS, PCIE and SIO


class Collective(NamedTuple):
    name: str
    group: str
    step: str
    ts_ns: int
    dur_ns: int
    link_bytes: dict[str, int]
    times_ns: dict[str, int]

    @property
    def transit_bytes(self) -> int:
        """Over all links."""
        return sum(size for link, size in self.link_bytes.items() if link != _SUM_OF_LINKS)


def read(path: Path, said: Problems) -> list[Collective]:
    """By step, point to point and collective alike, in order of time."""
    found: dict[tuple[str, str], Collective] = {}
    for step, name, told in _entries(_loaded(path, said)):
        collective = _collective(step, name, told)
        if collective is not None:
            found[step, name] = collective
        elif "@" in name:
            said.add(path.name, "a collective has no time or length and was left out")
    return sorted(found.values(), key=lambda c: (c.ts_ns, c.name))


def links(
    path: Path, starts: dict[str, int], words: Vocabulary, said: Problems
) -> list[tuple[int, int, float]]:
    """What each link carried in the collectives that the matrix names: when, counter, bytes."""
    samples = []
    for _, _, told in _entries(_loaded(path, said)):
        for pair, link in told.items():
            when = starts.get(str(link.get("Op Name"))) if isinstance(link, dict) else None
            size = _scaled(link.get("Transit Size(MB)"), _BYTES_PER_MB) if when else -1
            if when and size >= 0:
                name = f"link {pair} {link.get('Transport Type')} (bytes)"
                samples.append((when, words.names[name], float(size)))
    return sorted(set(samples))


def counters(collectives: list[Collective], words: Vocabulary) -> list[tuple[int, int, float]]:
    """What the collectives spent their time on, and what their links carried, at their starts."""
    found = []
    for collective in collectives:
        for what, length in collective.times_ns.items():
            found.append((collective.ts_ns, words.names[f"collective {what} (ns)"], float(length)))
        for link, size in collective.link_bytes.items():
            found.append((collective.ts_ns, words.names[f"{link} transit (bytes)"], float(size)))
    return found


def samples(rows: list[tuple[int, int, float]]) -> Samples:
    when, name, value = zip(*rows, strict=True) if rows else ((), (), ())
    return Samples(
        np.array(when, dtype=np.int64), np.array(name, dtype=np.int32),
        np.array(value, dtype=np.float64),
    )  # fmt: skip


def _loaded(path: Path, said: Problems) -> Any:
    try:
        text = compressed.beginning(path, _LARGEST_BYTES)
        return json.loads(text.decode("utf-8", "replace"))
    except UnreadableTrace as error:
        said.add(path.name, error.what)
    except (ValueError, RecursionError):
        said.add(path.name, "it is no whole JSON, and was left out")
    return {}


def _entries(whole: Any) -> list[tuple[str, str, dict[str, Any]]]:
    """(step, name, what is told) of a file: {step: {"p2p" or "collective": {name: told}}}."""
    return [
        (str(step), str(name), told)
        for step, kinds in _items(whole)
        for _, named in _items(kinds)
        for name, told in _items(named)
        if isinstance(told, dict)
    ]


def _items(value: Any) -> list[tuple[Any, Any]]:
    return list(value.items()) if isinstance(value, dict) else []


def _collective(step: str, name: str, told: dict[str, Any]) -> Collective | None:
    times, bandwidth = (
        dict(_items(told.get(f"Communication {part} Info"))) for part in ("Time", "Bandwidth")
    )
    ts_ns = int(moments([str(times.get("Start Timestamp(us)"))])[0])
    dur_ns = _scaled(times.get("Elapse Time(ms)"), 1e6)
    if ts_ns == NEVER or dur_ns < 0:
        return None
    sizes = {str(link): dict(_items(of)).get("Transit Size(MB)") for link, of in bandwidth.items()}
    carried = {link: _scaled(size, _BYTES_PER_MB) for link, size in sizes.items()}
    spent = {what: _scaled(times.get(key), 1e6) for key, what in _TIMES.items()}
    operation, _, group = name.partition("@")
    return Collective(
        operation, group, step, ts_ns, dur_ns, {k: v for k, v in carried.items() if v > 0},
        {k: v for k, v in spent.items() if v >= 0},
    )  # fmt: skip


def _scaled(value: Any, factor: float) -> int:
    return int(scaled([str(value)], factor)[0])
