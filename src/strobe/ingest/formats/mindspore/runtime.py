"""RuntimeProfilerDetail*.csv, which MindSpore writes under MS_ENABLE_RUNTIME_PROFILER=1.

    [Step:1 step_time:863529064ns, module_total_time:860050536ns]
    module:Kernel, event:KernelLaunch, op:MatMul, start_time:…, end_time:…, …, tid:7, pid:7

What the host did, thread by thread. Steps are told with their lengths alone: each ends with the
last thing in it.
"""

import re
from pathlib import Path

import numpy as np

from strobe.ingest.formats.kinds import KIND
from strobe.ingest.formats.mindspore import phases as mindspore_phases
from strobe.ingest.formats.mindspore.ops import lines
from strobe.ingest.formats.mindspore.phases import Border, Stretch
from strobe.ingest.steps.detection import Steps
from strobe.ingest.steps.phases import REST
from strobe.ingest.trace.spans import Spans, Track
from strobe.ingest.trace.trace import Trace

_STEP = re.compile(r"\[Step:\s*\d+,? step_time:\s*(\d{1,18})ns")
_EVENT = re.compile(
    r"(?:module|stage):(?P<module>[^,]*), event:(?P<event>[^,]*), op:(?P<op>.*?),"
    r" start_time:(?P<ts>\d{1,19}), end_time:(?P<end>\d{1,19}),.*?"
    r" tid:(?P<tid>\d{1,18}), pid:(?P<pid>\d{1,18})"
)
_Row = tuple[int, int, int, int, int, int]


def read(path: Path, number: int, trace: Trace) -> None:
    rows: list[_Row] = []
    steps: list[Stretch] = []
    first_row, length = 0, -1
    for line in lines(path, trace.said):
        if step := _STEP.match(line):
            steps += _ended(rows[first_row:], length)
            first_row, length = len(rows), int(step.group(1))
        elif event := _EVENT.match(line):
            rows.append(_row(event, trace))
        elif line:
            trace.said.add(path.name, "a line is neither a step nor an event, and was left out")
    steps += _ended(rows[first_row:], length)
    columns = np.array([row for row in rows if row[1] >= row[0]], dtype=np.int64).reshape(-1, 6).T
    trace.spans.append(Spans(
        columns[0], columns[1] - columns[0], columns[2].astype(np.int32),
        columns[3].astype(np.int32), columns[4].astype(np.int32),
        {"window": np.full(columns.shape[1], number, dtype=np.int64)},
    ))  # fmt: skip
    if steps:
        trace.steps = _steps(steps)


def _row(event: re.Match[str], trace: Trace) -> _Row:
    module, what, operator = event["module"].strip(), event["event"].strip(), event["op"].strip()
    kind, name = "annotation", f"{module if what == 'Default' else what} {operator}".strip()
    if module == "Kernel" and what == "KernelLaunch":
        kind, name = "op", operator or what
    elif module in ("Python", "SyncStream"):
        kind = "python" if module == "Python" else "sync"
    process, thread = int(event["pid"]), int(event["tid"])
    track = Track("cpu", process, thread)
    trace.words.track_names.setdefault(track, f"thread {thread}")
    ts_ns, end_ns = min(int(event["ts"]), 2**62), min(int(event["end"]), 2**62)
    return ts_ns, end_ns, KIND[kind], trace.words.names[name], trace.words.tracks[track], thread


def _ended(rows: list[_Row], length: int) -> list[Stretch]:
    """A step, up to the last of its events; none without events."""
    if not rows or length < 0:
        return []
    end = max(row[1] for row in rows)
    return [(end - length, end)]


def _steps(told: list[Stretch]) -> Steps:
    bounds: list[Stretch] = []
    for begin, end in sorted(told):
        begin = max(begin, bounds[-1][1]) if bounds else begin
        bounds.append((begin, max(begin, end)))
    nothing = np.zeros(0, dtype=np.int64)
    borders = [[Border(begin, REST)] for begin, _ in bounds]
    return mindspore_phases.tiled(bounds, borders, (nothing, nothing))
