"""Compiled code is recompiled repeatedly.

## What it is
A compiled function (torch.compile, jax.jit) is specialized to the shapes, types and Python values
of its first call. When one of them changes, it is compiled again, which takes seconds. After a few
recompilations, PyTorch gives up and runs the function without compiling it. In JAX, a function that
is created again in the loop is also compiled again.

Common causes are batches of varying length, a smaller last batch, a Python number that changes with
every step (a schedule, a counter), and a switch between training and evaluation.

## How it is judged
Strobe records every compilation with its line. Every compiled training compiles in its first steps;
the cost is that of later compilations. If most recompilations come later, those of the first steps
count as well, except the first of each function. The share is that of the whole recorded training,
including the compilation that is needed.

A step with a recompilation may take longer than the recompilation itself. This additional time also
counts, up to a quarter of the compilation time, because the code after a compilation is slow, too.

Where shapes change, the gain is a range. At most, fixed shapes cost nothing. At least, every batch
is padded to the largest, or three more sizes are compiled, whichever costs more.

## How to fix
In PyTorch, use `torch.compile(model, dynamic=True)`, or `torch._dynamo.mark_dynamic(x, 1)` for the
dimension that changes. Set `drop_last=True` on the data loader, pad lengths to a few sizes, and
pass changing numbers as tensors. `TORCH_LOGS=recompiles` before the command prints what changed.

In JAX, pad to a few shapes, pass changing numbers as arrays and not as `static_argnums`, and call
`jax.jit` once, outside the loop. `JAX_EXPLAIN_CACHE_MISSES=1` prints what changed.
"""

import math
import re
from collections import Counter
from typing import Any, NamedTuple

import numpy as np

from strobe.advise.finding import CannotTell, Clear, Evidence, Finding, Verdict
from strobe.advise.fixes import at_line, fix
from strobe.advise.thresholds import SMALLEST_SHARE
from strobe.advise.training import Lines, Training
from strobe.analyse.tables.steps.steps import WARM_UP_STEPS
from strobe.frameworks import Framework
from strobe.messages import Message, message
from strobe.model.journal import COMPILATION, MADE_ANEW
from strobe.units import count, duration, percent

NAME = "recompilation"

# compilation 2 of train_step (x was float32[8], now float32[7]) at train.py:31: the name of a
# compilation in frameworks that report which function they compile.
_FUNCTION = re.compile(rf"{COMPILATION}\d+ of (\S+)(?: \((.*)\))?(?: at |\Z)")

# The cause in such a name: x was float32[8], now float32[7]. MindSpore: Float32[7], was Float32[8].
_CHANGE = re.compile(
    r"(?P<what>.+?) was (?P<was>.+?), now (?P<now>.+)|(?P<then>.+), was (?P<before>.+)"
)
# Behind the cause, if several arguments changed.
_AND_MORE = re.compile(r"(?P<first>.+) and (?P<more>\d+) more")
_NEW, _GONE = " is new", " is gone"
_SAME_SHAPES = "called with the same shapes"
# The sizes in float32[8, 17].
_SHAPE = re.compile(r"\[(\d+(?:, *\d+)*)\]")
# float 0.5. MindSpore: 0.5.
_NUMBER = re.compile(r"(?:(?:int|float|complex) .*)|-?[\d.]+(?:e-?\d+)?")

# A function that is first called late, such as an evaluation, has to be compiled then.
_FIRST = re.compile(rf"{COMPILATION}1 of ")


# A compilation is followed by the first run of its program, by cleanup and by cold caches. A step
# that is longer than that has other reasons at the same time: an epoch ends, a model is evaluated.
MOST_AFTER_RATIO = 0.25

# Fewer steps without a compilation do not show how long a step is.
FEWEST_STEPS = 5

# If lengths are padded to a few sizes, each of them has to be compiled.
FEW_SIZES = 3

# No larger share is believed to be saved.
MOST_RATIO = 0.96


class _Change(NamedTuple):
    """A change of an argument that caused a compilation, as the framework prints both values."""

    argument: str | None  # None: its name is unknown
    before: str
    now: str

    @property
    def is_of_number(self) -> bool:
        return bool(_NUMBER.fullmatch(self.before))

    @property
    def is_of_array(self) -> bool:
        return "[" in self.before

    @property
    def is_of_shape(self) -> bool:
        return self.before.partition("[")[0] == self.now.partition("[")[0]


def check(training: Training) -> Verdict:
    compilations = training.rows(
        """
        SELECT e.id, t.rank, s.step, e.ts_ns, e.dur_ns, e.name
        FROM events e JOIN tracks t ON t.id = e.track_id
        ASOF JOIN step_times s ON s.rank = t.rank AND s.ts_ns <= e.ts_ns
        WHERE e.kind = 'annotation' AND starts_with(e.name, $name)
            AND e.ts_ns < s.ts_ns + s.dur_ns
        ORDER BY e.dur_ns DESC
        """,
        {"name": COMPILATION},
    )
    if not compilations:
        if training.is_imported:
            return CannotTell(
                message("recompilation.not-in-trace"), message("recompilation.record")
            )
        return Clear(message("recompilation.none"))
    again = _avoidable(training, compilations)
    cost_ns, total_ns = _cost_ns(training, compilations, again)
    share = cost_ns / max(1, total_ns)
    if share < SMALLEST_SHARE:
        return Clear(_why_clear(len(compilations), len(again), share))
    place = called_at(again)
    functions = Counter(found.group(1) for row in again if (found := _FUNCTION.match(row["name"])))
    compiler = training.framework.compiler.name if training.framework.compiler else None
    least, most = _gains(total_ns, cost_ns, compilations, again)
    return Finding(
        title=_title(compiler, functions, share),
        share=share,
        expected_speedup=math.sqrt(least * most),
        speedup_range=(least, most) if least < most else None,
        fixes=_fixes_of_function(again, place)
        if functions
        else _fixes_of_code(training.framework, place),
        evidence=(Evidence("events", tuple(again[:10])),),
        where=place,
        why=_why(compiler, functions, again, cost_ns),
    )


def _title(compiler: str | None, functions: Counter[str], share: float) -> Message:
    if not functions:
        id = "title-compiler" if compiler else "title-code"
        return message(f"recompilation.{id}", compiler=compiler or "", share=percent(share))
    if len(functions) > 1:
        return message("recompilation.title-functions", share=percent(share))
    return message("recompilation.title-function", function=next(iter(functions)),
                   share=percent(share))  # fmt: skip


def _why(
    compiler: str | None, functions: Counter[str], again: list[dict[str, Any]], cost_ns: float
) -> Message:
    if not functions:
        often = "once" if len(again) == 1 else "often"
        id = f"recompilation.{'compiler' if compiler else 'code'}-{often}"
    elif len(functions) > 1:
        id = "recompilation.functions-often"
    else:
        id = "recompilation.function-once" if len(again) == 1 else "recompilation.function-often"
    recompiled = message(
        id,
        compiler=compiler or "",
        function=functions.most_common(1)[0][0] if functions else "",
        count=count(len(again)),
        cost=duration(cost_ns),
    )
    cause = _main_cause(again)
    if cause is None:
        return recompiled
    return message("recompilation.with-cause", recompiled=recompiled, cause=_cause_sentence(cause))


def _why_clear(compilations: int, again: int, share: float) -> Message:
    values = {"count": count(compilations), "again": count(again), "share": percent(share)}
    if not again:
        id = "recompilation.one-needed" if compilations == 1 else "recompilation.all-needed"
    elif again == 1:
        is_only = compilations == 1
        id = "recompilation.only-one-small" if is_only else "recompilation.one-small"
    else:
        id = "recompilation.small"
    return message(id, **values)


def _avoidable(training: Training, compilations: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Those that were not needed. A second one in the first steps is usual, because types settle;
    if compilations continue after them, it was the first of many."""
    again = [row for row in compilations if not _FIRST.match(row["name"])]
    is_late = [
        bool(row["step"] > WARM_UP_STEPS) or training.judges(row["rank"], row["step"])
        for row in again
    ]
    if 2 * sum(is_late) > len(again):
        is_late = [
            late or bool(_FUNCTION.match(row["name"]))
            for late, row in zip(is_late, again, strict=True)
        ]
    return [row for late, row in zip(is_late, again, strict=True) if late]


def _cost_ns(
    training: Training, compilations: list[dict[str, Any]], avoidable: list[dict[str, Any]]
) -> tuple[float, float]:
    """The time that avoidable compilations take, and the time of all steps."""
    compiled: Counter[tuple[int, int]] = Counter()
    for row in avoidable:
        compiled[row["rank"], row["step"]] += row["dur_ns"]
    not_clean = {(row["rank"], row["step"]) for row in compilations}
    steps = training.run.sql("""
        SELECT rank, step, dur_ns - recorder_ns AS dur_ns, is_counted AS is_judged
        FROM step_times ORDER BY rank, step
    """).fetchnumpy()
    keys = list(zip(steps["rank"].tolist(), steps["step"].tolist(), strict=True))
    is_judged = np.asarray(steps["is_judged"])
    is_clean = np.array([key not in not_clean for key in keys], dtype=bool)
    compiled_ns = np.array([compiled[key] for key in keys], dtype=float)
    cost_ns = compiled_ns.copy()
    for rank in training.ranks:
        mine = is_judged & (steps["rank"] == rank)
        if (mine & is_clean).sum() >= FEWEST_STEPS:
            longer_ns = steps["dur_ns"][mine] - np.median(steps["dur_ns"][mine & is_clean])
            most_ns = compiled_ns[mine] * (1 + MOST_AFTER_RATIO)
            cost_ns[mine] = longer_ns.clip(compiled_ns[mine], most_ns)
    # All steps count, including the first compilation, which is needed: in a short training, it is
    # a large part.
    return float(cost_ns.sum()), float(steps["dur_ns"].sum())


def _gains(
    total_ns: float,
    cost_ns: float,
    compilations: list[dict[str, Any]],
    avoidable: list[dict[str, Any]],
) -> tuple[float, float]:
    """How much faster training gets at least and at most."""
    most = 1 / (1 - min(cost_ns / total_ns, MOST_RATIO))
    padding = _padding(avoidable)
    if padding == 1:
        return most, most
    avoidable_ns = sum(row["dur_ns"] for row in avoidable)
    needed_ns = sum(row["dur_ns"] for row in compilations) - avoidable_ns
    padded_ns = (padding - 1) * max(0.0, total_ns - cost_ns - needed_ns)
    sizes_ns = min(FEW_SIZES, len(avoidable) - 1) * avoidable_ns / len(avoidable)
    least = total_ns / (total_ns - cost_ns + max(padded_ns, sizes_ns))
    return min(most, max(1.0, least)), most


def _padding(compilations: list[dict[str, Any]]) -> float:
    """How many times as much there is to compute if every call is padded to the largest shape."""
    sizes: dict[str, list[int]] = {}
    for row in compilations:
        found = _FUNCTION.match(row["name"])
        change = _change(found.group(2) or "") if found else None
        if change is None or found is None:
            continue
        shape = _SHAPE.search(change.now)
        if shape is not None:
            sizes.setdefault(found.group(1), []).append(
                math.prod(int(size) for size in shape.group(1).split(","))
            )
    of_most = max(sizes.values(), key=len, default=[1])
    return max(of_most) / max(1.0, float(np.mean(of_most)))


def _fixes_of_code(framework: Framework, place: str | None) -> tuple[Message, ...]:
    """Where the compiler does not name the functions that it compiles."""
    names = ("compile-dynamic-at" if place else "compile-dynamic", "same-shapes",
             "log-recompilations")  # fmt: skip
    return tuple(fix(name, framework, place) for name in names)


def _fixes_of_function(avoidable: list[dict[str, Any]], place: str | None) -> tuple[Message, ...]:
    cause = _main_cause(avoidable)
    first = () if cause is None else (_fix_of_cause(cause, place),)
    return (
        *first,
        message("recompilation.keep-shapes"),
        message("recompilation.pass-numbers-as-arrays"),
    )


def _main_cause(compilations: list[dict[str, Any]]) -> str | None:
    """As recorded: that the function was created again, if most were compiled for that, or else
    another cause, the first of them. None if no cause was recorded."""
    found = (_FUNCTION.match(row["name"]) for row in compilations)
    causes = [match.group(2) for match in found if match and match.group(2)]
    created_again = [cause for cause in causes if cause.startswith(MADE_ANEW)]
    if created_again and 2 * len(created_again) >= len(causes):
        return created_again[0]
    return next((cause for cause in causes if cause not in created_again), None)


def _without_more(cause: str) -> tuple[str, int]:
    """The first change of a cause, and the number of further ones."""
    match = _AND_MORE.fullmatch(cause)
    return (match["first"], int(match["more"])) if match else (cause, 0)


def _change(cause: str) -> _Change | None:
    match = _CHANGE.fullmatch(_without_more(cause)[0])
    if match is None:
        return None
    return _Change(match["what"], match["was"] or match["before"], match["now"] or match["then"])


def _cause_sentence(cause: str) -> Message:
    sentence = _first_cause(cause)
    _, more = _without_more(cause)
    if not more:
        return sentence
    id = "recompilation.one-more" if more == 1 else "recompilation.more"
    return message(id, cause=sentence, count=count(more))


def _first_cause(cause: str) -> Message:
    if cause.startswith(MADE_ANEW):
        return message("recompilation.created-again")
    if cause.startswith(_SAME_SHAPES):
        return message("recompilation.same-shapes")
    change, (first, _) = _change(cause), _without_more(cause)
    if change is not None:
        id = "recompilation.changed" if change.argument else "recompilation.argument-changed"
        return message(id, what=change.argument or "", was=change.before, now=change.now)
    if first.endswith(_NEW):
        return message("recompilation.is-new", what=first.removesuffix(_NEW))
    if first.endswith(_GONE):
        return message("recompilation.is-gone", what=first.removesuffix(_GONE))
    return message("recompilation.other-cause", cause=first)


def _fix_of_cause(cause: str, place: str | None) -> Message:
    at = at_line(place)
    if cause.startswith(MADE_ANEW):
        return message("recompilation.create-once", at=at)
    if cause.startswith(_SAME_SHAPES):
        return message("recompilation.keep-settings", at=at)
    change, (first, _) = _change(cause), _without_more(cause)
    if change is None:
        is_of_arguments = first.endswith((_NEW, _GONE))
        id = "recompilation.pass-same-arguments" if is_of_arguments else "recompilation.keep-inputs"
        return message(id, at=at)
    return message(_id_of_fix(change), what=change.argument or "", at=at)


def _id_of_fix(change: _Change) -> str:
    has_name = change.argument is not None
    if change.is_of_number:
        return "recompilation.pass-as-array" if has_name else "recompilation.pass-number-as-array"
    if not change.is_of_array:
        return "recompilation.keep-value" if has_name else "recompilation.keep-values-of-arguments"
    if change.is_of_shape:
        return "recompilation.keep-shape" if has_name else "recompilation.keep-shapes-of-arguments"
    return "recompilation.keep-type" if has_name else "recompilation.keep-types-of-arguments"


def called_at(compilations: list[dict[str, Any]]) -> str | None:
    """The line that caused most of it: compilation 0/1 at train.py:31."""
    for row in compilations:
        file, colon, line = row["name"].partition(" at ")[2].rpartition(":")
        if colon and line.isdigit():
            return str(Lines(file, int(line)))
    return None
