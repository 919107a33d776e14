"""Trainings on a data loader, drawn: 30 alike steps, with all that the rule looks at."""

import json
from pathlib import Path

from strobe.advise.training import Training
from strobe.model.journal import NO_CORE_COUNTER
from tests.advise.drawings import of_framework
from tests.analyse.data_drawings import MS, batches, columns, step, wait
from tests.helpers import make_run

STEPS = 30
LOOK = ("rank", "ts_ns", "thread", "place", "stack")


def trained(
    folder: Path, *, waits: float, trains: float, made: dict, workers: int, early: float = 0,
    on_core: float | None = None, cores: int = 8, starts: float = 0, every: int = 0,
    looks: tuple = (), no_core: float = 0, first_trains: float | None = None,
    prepares: float = 0, is_timed: bool = True, **settings: object,
) -> Training:  # fmt: skip
    """Steps that wait and train so many ms. A batch is `made` of so many ms and was done `early` ms
    before the loop asked. A new pass starts every `every` steps, which takes `starts` ms; its first
    batch takes `prepares` ms more to make, and training waits for that."""
    drawing, rows, now, number = "", [], 0.0, 0
    counters = []
    for count in range(1, STEPS + 1):
        begins = bool(every) and (count - 1) % every == 0
        longer = prepares if begins else 0
        gap = waits + longer + (starts if begins else 0)
        computes = first_trains if begins and first_trains is not None else trains
        drawing += step(count, now, now + gap + computes, gap)
        if begins:
            drawing += wait(now, now + starts, count, is_start=True)
            number = 0
        asked = now + gap - waits - longer
        drawing += wait(asked, asked + waits + longer, count)
        length = made.get("fetch", 0) + made.get("collate", 0) + longer
        done = asked - early if early else asked + waits + longer
        rows.append({"ts": max(done - length, asked if begins else 0), "batch": number,
                     "worker": number % workers if workers else -1, **made,
                     "fetch": made.get("fetch", 0) + longer})  # fmt: skip
        if on_core is not None:
            at_ns, name = int((asked + 0.001) * MS), "loader 1 wait_on_core_ns"
            counters.append({"rank": 0, "ts_ns": at_ns, "name": name, "value": on_core * MS})
        number += 1
        now += gap + computes
        if no_core:
            counters.append({"rank": 0, "ts_ns": int(now * MS), "name": NO_CORE_COUNTER,
                             "value": count * no_core * MS})  # fmt: skip
    told = {
        "num_workers": workers,
        "cores": cores,
        "host": "here",
        "prefetch_factor": 2,
        **settings,
    }
    extra = (batches(*rows) if is_timed else {}) | {
        "places": columns([{"rank": 0, "what": "data loader", "number": 1, "file": "/a/train.py",
                            "line": 31, "function": "main", "details": json.dumps(told)}]),
        "samples": columns([dict(zip(LOOK, look, strict=True)) for look in looks]),
    }  # fmt: skip
    if counters:
        extra["counters"] = columns(counters)
    extra = {name: table for name, table in extra.items() if table}
    framework = "jax" if "library" in settings else "mindspore" if "stages" in settings else "torch"
    return Training(of_framework(make_run(folder, drawing, extra), framework))
