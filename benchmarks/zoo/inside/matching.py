"""Run a script under torch.profiler and leave what its pattern matcher says:
`matching.py FILE SCRIPT ...`.

Five steps in the middle are recorded, with stacks and shapes, as its documentation wants them.
"""

import json
import sys
from pathlib import Path

from watching import Watch, run_as_main

FIRST, LAST = 6, 10  # updates; Strobe records the same in full


class Recording:
    def __init__(self, file):
        self._file, self._count, self._profiler = Path(file), 0, None

    def after_update(self):
        self._count += 1
        if self._count == FIRST - 1:
            self._start()
        elif self._count == LAST:
            self._finish()

    def _start(self):
        from torch.profiler import ProfilerActivity, profile

        self._profiler = profile(
            activities=[ProfilerActivity.CPU], with_stack=True, record_shapes=True
        )
        self._profiler.start()

    def _finish(self):
        self._profiler.stop()
        self._file.write_text(json.dumps(summaries(self._profiler)))


def summaries(profiler):
    """One line for each pattern that matched; those that report_all_anti_patterns asks for.

    That function itself breaks on most real scripts of Python 3.11: names of frames that were open
    when recording began are gone by then. Here such an event is passed over.
    """
    from torch.profiler import _pattern_matcher as matcher

    lines = []
    for pattern in (
        matcher.ExtraCUDACopyPattern,
        matcher.FP32MatMulPattern,
        matcher.OptimizerSingleTensorPattern,
        matcher.SynchronizedDataLoaderPattern,
        matcher.GradNotSetToNonePattern,
        matcher.Conv2dBiasFollowedByBatchNorm2dPattern,
        matcher.MatMulDimInFP16Pattern,
    ):
        asked = pattern(profiler)
        asked.match = careful(asked.match)
        found = asked.matched_events()
        if found:
            lines.append(asked.summary(found))
    return lines


def careful(match):
    def matches(event):
        try:
            return match(event)
        except UnicodeDecodeError:
            return False

    return matches


if __name__ == "__main__":
    recording = Recording(sys.argv[1])
    Watch(on_begin=lambda: None, on_update=recording.after_update)
    run_as_main(sys.argv[2:])
