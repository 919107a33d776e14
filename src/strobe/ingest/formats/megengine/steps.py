"""The training steps of a MegEngine timeline, by the rule that finds those of our own recordings.

`Profiler.step()` ends a step; without it the optimizer's update does. Times are those of the
interpreter, which dispatches operators and runs ahead of them.
"""

from dataclasses import dataclass

import numpy as np

from strobe.ingest.steps.detection import Marks, Steps, decide
from strobe.ingest.trace.codes import Array
from strobe.model.journal import GRAD_ENABLED, TRAINING_MODE, Mark


@dataclass
class Blocks:
    """Outermost blocks of the interpreter, modules and TRAINS, and the ends of steps it marked."""

    ts_ns: Array
    dur_ns: Array
    names: list[str]
    is_module: Array
    stops_ns: Array


_SPANS = {
    "backward": (Mark.BACKWARD_BEGAN, Mark.BACKWARD_ENDED),
    "step": (Mark.UPDATE_BEGAN, Mark.UPDATE_ENDED),
}
TRAINS = frozenset((*_SPANS, "clear_grad"))
_FORWARD = (Mark.FORWARD_BEGAN, Mark.FORWARD_ENDED)


def steps(blocks: Blocks) -> Steps | None:
    """None where nothing tells of training."""
    if not len(blocks.stops_ns) and not {"backward", "step"} & set(blocks.names):
        return None
    marks: list[tuple[int, int, int]] = []  # ts_ns, code, value
    order = np.argsort(blocks.ts_ns, kind="stable").tolist()
    for row in order:
        began, length = int(blocks.ts_ns[row]), int(blocks.dur_ns[row])
        if blocks.names[row] == "clear_grad":
            marks.append((began, Mark.ZERO_GRAD, length))
            continue
        pair = _SPANS.get(blocks.names[row], _FORWARD if blocks.is_module[row] else None)
        if pair is not None:
            mode = GRAD_ENABLED | TRAINING_MODE if pair is _FORWARD else 0
            marks += [(began, pair[0], mode), (began + length, pair[1], 1)]
    marks += [(int(at), Mark.STEP, 0) for at in blocks.stops_ns.tolist()]
    marks.sort(key=lambda mark: mark[0])
    ts_ns, code, value = np.array(marks, dtype=np.int64).reshape(-1, 3).T
    thread = np.zeros(len(ts_ns), dtype=np.int64)
    found = decide(Marks(ts_ns, code, np.ones(len(ts_ns), dtype=np.int64), value, thread))
    return found if len(found.step_ts_ns) else None
