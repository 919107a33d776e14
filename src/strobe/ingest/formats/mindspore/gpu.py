"""What MindSpore left of a GPU: its kernels and its step trace.

- activity_execute_timestamp_0.txt: `NAME;STREAM;START;LENGTH`, in ns and microseconds.
- step_trace_profiling_0.txt: a line a step, `NAME,MOMENT` for where it begins, forward begins,
  backward ends and the step ends, then `NAME,START,END` for each collective, in ns.
"""

from pathlib import Path

import numpy as np

from strobe.ingest.formats.ascend.numbers import NEVER, integers, lengths, moments
from strobe.ingest.formats.kinds import KIND
from strobe.ingest.formats.mindspore.names import meaning
from strobe.ingest.formats.mindspore.old import Collectives, StepTrace
from strobe.ingest.formats.mindspore.ops import lines
from strobe.ingest.trace.problems import Problems
from strobe.ingest.trace.spans import Spans, Track, Vocabulary

_POINTS = ("start_point", "fp_point", "bp_point", "end_point")


def kernels(path: Path, device: str, number: int, words: Vocabulary, said: Problems) -> Spans:
    rows = [line.rsplit(";", 3) for line in lines(path, said)]
    whole = [row for row in rows if len(row) == 4]
    columns = list(zip(*whole, strict=True)) if whole else [(), (), (), ()]
    ts_ns, dur_ns = moments(columns[2], 1), lengths(columns[3], 1000)
    stream = integers(columns[1])
    known = (ts_ns != NEVER) & (dur_ns >= 0)
    said.add(path.name, "a line does not tell of a kernel and was left out",
             sum(row != [""] for row in rows) - int(known.sum()))  # fmt: skip
    tracks = []
    for number_of_stream in stream.tolist():
        track = Track(device, None, max(0, number_of_stream))
        words.track_names.setdefault(track, f"stream {max(0, number_of_stream)}")
        tracks.append(words.tracks[track])
    kind = [KIND["memcpy" if "memcpy" in n.lower() else "kernel"] for n in columns[0]]
    names = words.names.of(columns[0], len(whole))
    count = int(known.sum())
    return Spans(
        ts_ns[known], dur_ns[known], np.array(kind, dtype=np.int32)[known], names[known],
        np.array(tracks, dtype=np.int32)[known],
        {
            "window": np.full(count, number, dtype=np.int64),
            "on_device": np.ones(count, dtype=np.int64), "stream": stream[known],
        },
    )  # fmt: skip


def steps(path: Path, said: Problems) -> StepTrace:
    points: list[list[int]] = []
    reduced: dict[str, list[tuple[int, int]]] = {}
    for line in filter(None, lines(path, said)):
        cells = [cell.rsplit(",", 2 if place > 3 else 1) for place, cell in enumerate(line.split())]
        told = [integers(cell[1:]).tolist() for cell in cells]
        at = [when[0] for when in told[:4] if len(when) == 1]
        if len(at) < 4 or min(at) <= 0 or sorted(at) != at:
            said.add(path.name, "a line does not tell of a step and was left out")
            continue
        points.append(at)
        for (name, *_), when in zip(cells[4:], told[4:], strict=True):
            if len(when) == 2 and 0 < when[0] <= when[1]:
                reduced.setdefault(name, []).append((when[0], when[1]))
    columns = np.array(sorted(points), dtype=np.int64).reshape(-1, 4).T
    found = [
        Collectives(meaning(name).type, 0, *np.array(spans, dtype=np.int64).T)
        for name, spans in reduced.items()
    ]
    return StepTrace(
        np.arange(1, columns.shape[1] + 1), dict(zip(_POINTS, columns, strict=True)), found
    )
