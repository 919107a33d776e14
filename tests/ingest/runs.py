"""Runs with a hand-written raw/: marks, facts and windows as a recorder would leave them."""

import gzip
import json
from pathlib import Path

from strobe.model.journal import FACTS_FILE, HEADER, HEADER_BYTES, MAGIC, RECORD, Mark

START_NS = 1_700_000_000_000_000_000  # when these runs begin, since 1970
BOOT_NS = 5_000_000_000  # the same moment on their monotonic clock
STEP_MARKS = list(Mark)[:8]  # data, forward, backward, update: began and ended


def write_raw(
    run: Path, marks=(), facts=(), *, rank: int = 0, ended: str | None = "finished", strings=()
) -> Path:
    """A rank's raw/. A mark is (ns since the run began, Mark, ref, value[, thread])."""
    raw = run / f"rank_{rank}" / "raw"
    raw.mkdir(parents=True)
    body = b"".join(
        RECORD.pack(BOOT_NS + ts, value, ref, *(rest or (0,)), int(code))
        for ts, code, ref, value, *rest in marks
    )
    header = HEADER.pack(MAGIC, 2) + b"{}"
    (raw / "journal-0001.bin").write_bytes(header.ljust(HEADER_BYTES, b"\0") + body + bytes(240))
    lines = [
        {"type": "process", "pid": 77, "host": "there", "rank": rank, "world_size": 2,
         "unix_ns": START_NS, "monotonic_ns": BOOT_NS, "frameworks": {"torch": "2.13.0"}},
        {"type": "thread", "id": 0, "native_id": 77, "name": "MainThread"},
        *({"type": "string", "id": i, "kind": k, "text": t} for i, k, t in strings),
        *facts,
    ]  # fmt: skip
    if ended:
        lines.append({"type": "end", "state": ended, "unix_ns": START_NS + 10**9})
    text = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)
    (raw / FACTS_FILE).write_text(text, encoding="utf-8")
    return raw


def write_window(raw: Path, events: list[dict], modules=None, names=None, number: int = 1) -> None:
    """A window trace; the ts of its events are microseconds since the run began."""
    trace = {"baseTimeNanoseconds": START_NS, "traceEvents": events}
    with gzip.open(raw / f"window-{number:04}.trace.json.gz", "wt", encoding="utf-8") as file:
        json.dump(trace, file)
    entries = {"modules": modules or {}, "names": names or {}}
    (raw / f"window-{number:04}.names.json").write_text(json.dumps(entries), encoding="utf-8")


def op(name: str, start: float, end: float, category: str = "cpu_op", **args) -> dict:
    event = {"ph": "X", "cat": category, "name": name, "pid": 77, "tid": 77}
    return {**event, "ts": start, "dur": round(end - start, 3), "args": args}


def plain_steps(count: int, step_ns: int = 80_000):
    """Marks of an even training loop: eight marks a step, equally far apart."""
    values = {Mark.DATA_ASKED: 2, Mark.DATA_CAME: 1, Mark.FORWARD_BEGAN: 3, Mark.FORWARD_ENDED: 1}
    return [
        (1000 + step * step_ns + place * step_ns // 8, mark, 1, values.get(mark, 0))
        for step in range(count)
        for place, mark in enumerate(STEP_MARKS)
    ]
