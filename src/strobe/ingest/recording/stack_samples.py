"""Samples of Python stacks, as the table `samples`."""

import json
from typing import Any, NamedTuple

import numpy as np

from strobe.ingest.recording.journal_reader import Journal
from strobe.ingest.recording.places import short
from strobe.ingest.trace.codes import Array, Codes, strings
from strobe.model.journal import SAMPLE_WAIT_BITS, Mark

TRAINING = "training"


class Looks(NamedTuple):
    """Samples of one thread. `stack` has for each the text that the recorder assigned to it."""

    ts_ns: Array
    thread: str
    stack: list[str]
    cpu_ns: Array | None = None
    waited_ns: Array | None = None


def of_training(journal: Journal, ts_ns: Array) -> Looks:
    chosen = journal.code == Mark.SAMPLE
    value = journal.value[chosen]
    return Looks(
        ts_ns[chosen],
        TRAINING,
        [journal.text(ref, "") for ref in journal.ref[chosen].tolist()],
        cpu_ns=(value >> SAMPLE_WAIT_BITS) * 1000,
        waited_ns=(value & ((1 << SAMPLE_WAIT_BITS) - 1)) * 1000,
    )


def beside_training(journal: Journal, ts_ns: Array) -> list[Looks]:
    """Samples of other Python threads, each with its CPU time."""
    is_look = journal.code == Mark.SAMPLE_BESIDE
    known, found = journal.threads(), []
    for number in np.unique(journal.thread[is_look]).tolist():
        chosen = is_look & (journal.thread == number)
        name = known.get(number, {}).get("name") or str(number)
        stacks = [journal.text(ref, "") for ref in journal.ref[chosen].tolist()]
        found.append(Looks(ts_ns[chosen], f"thread {name}", stacks, journal.value[chosen]))
    return found


def columns(parts: list[Looks], rank: int, process: dict[str, Any]) -> dict[str, Any]:
    """As columns of the stored table. `process`: the fact of the process that trained."""
    texts = Codes[str]()
    known: dict[str, tuple[int, int, int]] = {}
    rows = []
    for text in (text for part in parts for text in part.stack):
        if text not in known:
            known[text] = tuple(  # type: ignore[assignment]
                -1 if field is None else texts[field] for field in _fields(text, process)
            )
        rows.append(known[text])
    codes = np.array(rows, dtype=np.int32).reshape(-1, 3)
    threads = [np.full(len(part.ts_ns), texts[part.thread]) for part in parts]
    return {
        "rank": np.full(len(rows), rank, dtype=np.int64),
        "ts_ns": _joined([part.ts_ns for part in parts]),
        "thread": strings(_joined(threads), texts),
        "place": strings(codes[:, 0], texts),
        "function": strings(codes[:, 1], texts),
        "stack": strings(codes[:, 2], texts),
        "cpu_ns": _optional([part.cpu_ns for part in parts], parts),
        "waited_ns": _optional([part.waited_ns for part in parts], parts),
    }


def _fields(text: str, process: dict[str, Any]) -> tuple[str | None, str | None, str]:
    """Place, function and stack."""
    try:
        which, frames = json.loads(text)
        stack = json.dumps(frames, ensure_ascii=False)
        if which is None:
            return None, None, stack
        file, line, function = frames[which]
        return f"{short(str(file), process)}:{int(line)}", str(function), stack
    except (ValueError, TypeError, IndexError):  # a damaged fact
        return None, None, "[]"


def _joined(arrays: list[Array]) -> Array:
    return np.concatenate([np.zeros(0, dtype=np.int64), *arrays]).astype(np.int64)


def _optional(values: list[Array | None], parts: list[Looks]) -> Any:
    counts = [len(part.ts_ns) for part in parts]
    arrays = [np.zeros(n) if v is None else v for v, n in zip(values, counts, strict=True)]
    is_unknown = [np.full(n, v is None) for v, n in zip(values, counts, strict=True)]
    return np.ma.masked_array(_joined(arrays), mask=_joined(is_unknown).astype(bool))
