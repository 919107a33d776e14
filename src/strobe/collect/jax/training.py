"""Which of the programs whose results are their arguments again train? Those that use a gradient.

Evaluations have state too (sums of metrics), and so do environments and moving averages. If any
program takes a gradient, only programs on a circle through such a one train. Libraries such as flax
return all state of a function, changed or not: parameters that an evaluation passes through come
from the training step in other calls, which distinguishes them from parameters that it updates.
"""

from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from strobe.collect.jax.programs import Program

# Number of calls after which a program without a gradient is considered the training, if nothing
# else trains: there are trainings without gradients, but evaluations before the first step are more
# common.
WITHOUT_GRADIENT_CALLS = 200


def may_take_gradient(program: "Program") -> bool:
    """For ahead-of-time compiled functions this is unknown."""
    return program.takes_gradient is not False


def that_train(
    programs: list["Program"], candidates: list["Program"], is_late: bool
) -> list["Program"]:
    """Those that train, of candidates whose results are arguments again.

    `is_late` if none may take a gradient and it is too late to wait for one.
    """
    sure = [program for program in candidates if may_take_gradient(program)]
    if not sure:
        return candidates if is_late else []
    feeds = {program: [p for p in program.feeds if _updates(program, p)] for program in programs}
    found = set(sure)
    for program in candidates:
        ahead = _reached(program, feeds)
        if any(goal in ahead and program in _reached(goal, feeds) for goal in sure):
            found.add(program)
    found.update([program for program in candidates if _follows(program, found)])
    return [program for program in candidates if program in found]


def that_sum(trained: list["Program"]) -> list["Program"]:
    """Training programs that only sum or clip gradients: their results go to a program that
    updates, and not to one that takes a gradient.
    """
    if not any(program.gathers for program in trained if may_take_gradient(program)):
        return []
    updating = {
        program for program in trained
        if not may_take_gradient(program) and any(map(may_take_gradient, program.feeds))
    }  # fmt: skip
    return [
        program for program in trained
        if not may_take_gradient(program) and program not in updating and program.feeds & updating
    ]  # fmt: skip


def reaches(start: "Program", goal: "Program") -> bool:
    return goal in _reached(start, None)


def _updates(source: "Program", target: "Program") -> bool:
    """Whether the target takes something from the source that programs with a gradient, including
    itself, never return.
    """
    if may_take_gradient(source) or not may_take_gradient(target):
        return True
    others = [places for p, places in target.fed_by.items() if may_take_gradient(p)]
    return not target.fed_by.get(source, set()) <= set[int]().union(*others)


def _follows(program: "Program", trained: set["Program"]) -> bool:
    """A moving average of parameters: made only of its own results and those of training."""
    sources = set(program.fed_by)
    return not program.takes_data and bool(sources & trained) and sources <= trained | {program}


def _reached(start: "Program", feeds: "dict[Program, list[Program]] | None") -> set["Program"]:
    """Through any number of others; itself only if it is on a circle."""
    seen: set[Program] = set()
    ahead = [start]
    while ahead:
        program = ahead.pop()
        nexts: Iterable[Program] = program.feeds if feeds is None else feeds[program]
        for following in nexts:
            if following not in seen:
                seen.add(following)
                ahead.append(following)
    return seen
