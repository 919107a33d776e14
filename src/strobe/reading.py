"""Open a run for questions: bring its tables up to date, then hand out everything by name."""

import os
from pathlib import Path

from strobe.advise import Advice, advise, rules_named
from strobe.analyse.comparison.runs import MIN_SHARE, Comparison
from strobe.analyse.comparison.runs import compare as compare_runs
from strobe.analyse.opened import OpenedRun
from strobe.ingest.building.opening import open_run_dir


class AdvisedRun(OpenedRun):
    """A run open for questions, the last of which is: why is it slow?"""

    def advise(self, *rules: str) -> Advice:
        """What these rules say of it, or all: verdict, findings, clear, cannot_tell."""
        return advise(self.run, rules_named(rules))


def open_run(path: str | os.PathLike[str], *, store_later: bool = False) -> AdvisedRun:
    """With `store_later`, new tables may stay in memory until `opened.run.store()` is called."""
    return AdvisedRun(open_run_dir(Path(path), store_later=store_later))


def advice(path: str | os.PathLike[str], *rules: str) -> Advice:
    """Why is the run slow? With names of rules, only those are asked."""
    opened = open_run(path)
    with opened:
        return opened.advise(*rules)


def compare(
    a: str | os.PathLike[str], b: str | os.PathLike[str], *, min_share: float = MIN_SHARE
) -> Comparison:
    """What got slower or faster from run A to run B, and what explains it."""
    with open_run(a) as before, open_run(b) as after:
        return compare_runs(before.run, after.run, min_share)
