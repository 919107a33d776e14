"""Metrics that were recorded by themselves: their names, and the samples per second.

Only the whole run shows whether there is one loss or several (model/automatic_metrics.py).
"""

from collections.abc import Iterable, Mapping

import numpy as np

from strobe.ingest.recording.journal_reader import Journal
from strobe.ingest.steps.detection import Steps
from strobe.ingest.trace.codes import Array
from strobe.model.automatic_metrics import (
    BATCH_SIZE_COUNTER,
    GRADIENT_NORM,
    LEARNING_RATE,
    LOSS,
    Series,
    series_of,
)
from strobe.model.journal import Mark

# Several optimizers train on a loss in turn if the next one differs from the last this often, and
# for this share of its values: not if one replaces another, nor if single updates are skipped.
_FEWEST_OPTIMIZERS, _FEWEST_TURNS, _LEAST_TURNS = 2, 3, 0.1

_BATCH_CAME = 1  # in the lowest bits of the value of DATA_CAME
_OUTCOME_BITS = 3


def names(tags: Iterable[str]) -> dict[str, str | None]:
    """The final name of each tag that was recorded by itself; None if it is left out."""
    found = {tag: series for tag in tags if (series := series_of(tag)) is not None}
    named: dict[str, str | None] = {}
    for kind in {series.kind for series in found.values()}:
        of_kind = {tag: series for tag, series in found.items() if series.kind == kind}
        named |= _names_of_kind(kind, of_kind)
    rates = {series.optimizer for series in found.values() if series.kind == LEARNING_RATE}
    if len(rates) > 1:  # not every one has had its turn
        for tag, series in found.items():
            if series.kind == GRADIENT_NORM and series.optimizer >= 0 and named[tag]:
                named[tag] = f"{GRADIENT_NORM}/{series.optimizer}"
    return named


def _names_of_kind(kind: str, of_kind: dict[str, Series]) -> dict[str, str | None]:
    named: dict[str, str | None] = {}
    calls = {tag: series for tag, series in of_kind.items() if series.optimizer < 0}
    if kind == GRADIENT_NORM and calls:  # those of the script replace what was computed before
        named = dict.fromkeys(of_kind)
        of_kind = calls
    key = _call if calls else _optimizer
    groups = list(dict.fromkeys(key(series) for series in _in_order(of_kind.values())))
    if kind == LEARNING_RATE:
        texts = _group_names(list(of_kind.values()))
    elif calls:
        texts = _call_names(list(of_kind.values()))
    else:
        texts = {group: str(number) for number, group in enumerate(groups)}
    for tag, series in of_kind.items():
        named[tag] = f"{kind}/{texts[key(series)]}" if len(groups) > 1 else kind
    return named


_Key = tuple[str | int, ...]


def _call(series: Series) -> _Key:
    """Calls with the same variable in the same function are one series: the branches of an if."""
    return (series.function, series.name or series.line, series.group)


def of_optimizers(
    times: Mapping[str, Array], marks: Journal, ts_ns: Array
) -> dict[str, tuple[list[str], Array]]:
    """Tags of losses that are trained on by several optimizers in turn, though the script computes
    them in the same function under the same name. For each, a tag for every optimizer, and which of
    them its values belong to. The numbers are those of the learning rates.
    """
    is_begin, is_end = marks.code == Mark.UPDATE_BEGAN, marks.code == Mark.UPDATE_ENDED
    refs, first = np.unique(marks.ref[is_begin], return_index=True)
    if len(refs) < _FEWEST_OPTIMIZERS:
        return {}
    numbers = np.argsort(np.argsort(first))[np.searchsorted(refs, marks.ref[is_begin])]
    same: dict[_Key, list[str]] = {}
    for tag in times:
        series = series_of(tag)
        if series is not None and series.kind == LOSS and series.line:
            same.setdefault(_call(series), []).append(tag)
    found: dict[str, tuple[list[str], Array]] = {}
    for tags in same.values():
        own = [_optimizer_at(times[tag], ts_ns[is_begin], ts_ns[is_end], numbers) for tag in tags]
        order = np.argsort(np.concatenate([times[tag] for tag in tags]), kind="stable")
        turns = int((np.diff(np.concatenate(own)[order]) != 0).sum())
        if turns < max(_FEWEST_TURNS, len(order) * _LEAST_TURNS):
            continue
        for tag, which in zip(tags, own, strict=True):
            series = series_of(tag)
            assert series is not None
            of_each = [series._replace(group=number).tag for number in range(len(refs))]
            found[tag] = of_each, which
    return found


def _optimizer_at(times: Array, begins: Array, ends: Array, numbers: Array) -> Array:
    """The optimizer that updates at these times, or else the next one that does."""
    begun = np.searchsorted(begins, times, side="right")
    is_inside = begun > np.searchsorted(ends, times, side="right")
    found: Array = numbers[np.minimum(begun - is_inside, len(begins) - 1)]
    return found


def _optimizer(series: Series) -> _Key:
    return (series.optimizer, series.group)


def _in_order(found: Iterable[Series]) -> list[Series]:
    return sorted(found, key=lambda series: (series.optimizer, series.group))


def _group_names(found: list[Series]) -> dict[_Key, str]:
    ordered = _in_order(found)
    given = [series.name for series in ordered]
    are_named = all(given) and len(set(given)) == len({_optimizer(series) for series in ordered})
    return {
        _optimizer(series): series.name if are_named else str(number)
        for number, series in enumerate(ordered)
    }


def _call_names(found: list[Series]) -> dict[_Key, str]:
    """By variable; if that is ambiguous, by function and optimizer, too."""
    of_key = {_call(series): series for series in found}
    functions = {series.function for series in found}
    plain = {key: one.name or f"line {one.line}" for key, one in of_key.items()}
    if len(of_key) > 1 and len(set(plain.values())) == 1 == len(functions):
        return {key: str(one.group) for key, one in of_key.items()}
    named: dict[_Key, str] = {}
    for key, one in of_key.items():
        others = [of_key[k] for k, text in plain.items() if text == plain[key] and k != key]
        name = plain[key]
        if any(other.function != one.function for other in others):
            name = f"{one.function.strip('<>')}.{name}"
        if any(other.function == one.function for other in others):
            name = f"{name}/{one.group}"
        named[key] = name
    return named


def samples_per_second(marks: Journal, ts_ns: Array, steps: Steps) -> tuple[Array, Array, Array]:
    """Step, its end, and the samples of its batches by its time, for steps with known batches."""
    came_ns, sizes = _batches(marks, ts_ns)
    is_training = ~_are_evaluated(marks, ts_ns, steps, came_ns)
    came_ns, sizes = came_ns[is_training], sizes[is_training]
    begins = np.asarray(steps.step_ts_ns, dtype=np.int64)
    lengths = np.asarray(steps.step_dur_ns, dtype=np.int64)
    place = np.searchsorted(begins, came_ns, side="right") - 1
    is_inside = place >= 0
    is_inside[is_inside] = came_ns[is_inside] < begins[place[is_inside]] + lengths[place[is_inside]]
    samples = np.bincount(place[is_inside], weights=sizes[is_inside], minlength=len(begins))
    which = np.flatnonzero((samples > 0) & (lengths > 0))
    values = samples[which] / (lengths[which] / 1e9)
    return which + 1, begins[which] + lengths[which], values


def _batches(marks: Journal, ts_ns: Array) -> tuple[Array, Array]:
    """When each batch of a known size came, and its size."""
    is_came = (marks.code == Mark.DATA_CAME) & (marks.value & _OUTCOME_BITS == _BATCH_CAME)
    found_ns: list[Array] = [np.zeros(0, dtype=np.int64)]
    found_sizes: list[Array] = [np.zeros(0, dtype=np.int64)]
    refs = {text: ref for ref, (kind, text) in marks.strings.items() if kind == "counter"}
    for loader in np.unique(marks.ref[is_came]).tolist():
        number = marks.text(loader, "").removeprefix("loader ").partition(":")[0]
        counter = refs.get(BATCH_SIZE_COUNTER.format(number))
        if counter is None:
            continue
        is_size = (marks.code == Mark.COUNTER) & (marks.ref == counter)
        came_ns = ts_ns[is_came & (marks.ref == loader)]
        last = np.searchsorted(ts_ns[is_size], came_ns, side="right") - 1
        found_ns.append(came_ns[last >= 0])
        found_sizes.append(marks.value[is_size][last[last >= 0]])
    when, sizes = np.concatenate(found_ns), np.concatenate(found_sizes)
    order = np.argsort(when, kind="stable")
    return when[order], sizes[order]


def _are_evaluated(marks: Journal, ts_ns: Array, steps: Steps, came_ns: Array) -> Array:
    """Batches that a model was evaluated on, and not trained, before the next was asked for."""
    asked_ns = ts_ns[marks.code == Mark.DATA_ASKED]
    places = np.searchsorted(asked_ns, came_ns, side="right")
    last = np.iinfo(np.int64).max
    until_ns = np.append(asked_ns, last)[places]
    trained_ns = ts_ns[marks.code == Mark.BACKWARD_BEGAN]
    evaluated: Array = _any_between(np.asarray(steps.evaluations.ts_ns), came_ns, until_ns)
    return evaluated & ~_any_between(trained_ns, came_ns, until_ns)


def _any_between(times: Array, begin: Array, end: Array) -> Array:
    found: Array = np.searchsorted(times, begin) < np.searchsorted(times, end)
    return found
