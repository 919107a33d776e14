"""The history of a W&B run: numbers as columns, media and other values one by one."""

from typing import Any

import numpy as np

from strobe.ingest.formats.event_files.events import nanoseconds
from strobe.ingest.formats.event_files.messages import Fields, scan, submessages
from strobe.ingest.formats.trackers.logged_values import EPOCH_TAGS, SYSTEM, TYPE, LoggedValues
from strobe.ingest.formats.wandb import items as item_columns
from strobe.ingest.formats.wandb.items import SEPARATOR, Items, Paths
from strobe.ingest.formats.wandb.step_metrics import StepMetrics
from strobe.ingest.formats.xplane.wire import BYTES, VARINT, Block
from strobe.ingest.trace.codes import Array, mapped
from strobe.ingest.trace.metric_rows import UNKNOWN

_ITEM, _STEP, _STEP_NUMBER = 1, 2, 1
_STATS_TIME, _STATS_ITEM, _SECONDS, _NANOS = 2, 3, 1, 2
_NS_PER_S = 10**9
_LATEST_S = 1 << 33
_EXACT = 2.0**53
_DEEPEST = 50  # keys of a path

STEP, TIMESTAMP, RUNTIME, INTERNAL = "_step", "_timestamp", "_runtime", "_wandb"
_UNLOGGED = {STEP, TIMESTAMP, RUNTIME, INTERNAL}


class History:
    def __init__(self, values: LoggedValues, steps: StepMetrics) -> None:
        self._values, self._steps = values, steps
        self._paths = Paths()
        self.started_unix_ns: int | None = None

    def take(self, block: Block, records: Fields) -> None:
        """The history records of a piece."""
        count = len(records)
        inside, broken = scan(block, records.start, records.end)
        items = item_columns.read(block, submessages(block, inside, _ITEM), self._paths)
        self._count_damage(broken + items.broken)
        names = self._paths.table()
        value_of = _Named(items, names, count)
        step = _steps(block, inside, value_of)
        ts_ns = self._times(value_of)
        objects = _Objects(items, names)
        unlogged = [n for n, name in enumerate(names) if name.split(SEPARATOR)[0] in _UNLOGGED]
        is_logged = (items.path >= 0) & ~np.isin(items.path, unlogged)
        is_scalar = is_logged & items.is_number & (objects.home < 0)
        self._add_scalars(items, np.flatnonzero(is_scalar), names, step, ts_ns, value_of)
        others = np.flatnonzero(is_logged & ~is_scalar)
        self._take_others(items, others, names, step, ts_ns, objects)

    def take_system_metrics(self, block: Block, records: Fields) -> None:
        inside, broken = scan(block, records.start, records.end)
        items = item_columns.read(block, submessages(block, inside, _STATS_ITEM), self._paths)
        self._count_damage(broken + items.broken)
        times = inside.of(_STATS_TIME, BYTES)
        parts = scan(block, times.start, times.end).fields
        ts_ns = np.full(len(records), UNKNOWN, dtype=np.int64)
        seconds = parts.of(_SECONDS, VARINT)
        is_time = seconds.value < _LATEST_S
        whole = times.owner[seconds.owner[is_time]]
        ts_ns[whole] = seconds.value[is_time].astype(np.int64) * _NS_PER_S
        nanos = parts.of(_NANOS, VARINT)
        is_part = nanos.value < _NS_PER_S
        owner = times.owner[nanos.owner[is_part]]
        ts_ns[owner] += np.where(ts_ns[owner] != UNKNOWN, nanos.value[is_part].astype(np.int64), 0)
        names = self._paths.table()
        rows = np.flatnonzero((items.path >= 0) & items.is_number)
        unknown = np.full(len(rows), UNKNOWN, dtype=np.int64)
        self._values.add_scalars(
            self._tags(items.path[rows], names, SYSTEM), unknown, ts_ns[items.owner[rows]],
            items.number[rows],
        )  # fmt: skip

    def _add_scalars(
        self, items: Items, rows: Array, names: list[str], step: Array, ts_ns: Array,
        value_of: "_Named",
    ) -> None:  # fmt: skip
        owner, path = items.owner[rows], items.path[rows]
        steps = step[owner]
        for metric, its_paths in self._steps.by_metric(names).items():
            at = _filled(value_of[metric], self._steps.last, metric)
            is_step = np.isfinite(at) & (np.abs(at) < _EXACT) & (at == np.rint(at))
            known = np.where(is_step, at, 0).astype(np.int64)
            mine = np.isin(path, its_paths) & is_step[owner]
            steps = np.where(mine, known[owner], steps)
        epoch = np.full(len(step), np.nan)
        for name in reversed(EPOCH_TAGS):
            its = value_of[name]
            epoch = np.where(np.isnan(its), epoch, its)
        self._values.add_scalars(
            self._tags(path, names), steps, ts_ns[owner], items.number[rows], epoch[owner]
        )

    def _tags(self, path: Array, names: list[str], prefix: str = "") -> Array:
        """The number of the tag of each path."""
        table = np.full(len(names), -1, dtype=np.int64)
        for number in np.unique(path).tolist():
            table[number] = self._values.tags[prefix + _tag(names[number])]
        return mapped(path, table)

    def _take_others(
        self, items: Items, rows: Array, names: list[str], step: Array, ts_ns: Array,
        objects: "_Objects",
    ) -> None:  # fmt: skip
        """Objects are put together from their items before they are read."""
        wholes: dict[tuple[int, str], dict[str, Any]] = {}
        for row in rows.tolist():
            try:
                value = items.value(row)
            except (ValueError, RecursionError):
                self._values.say("values that are not JSON were left out", 1)
                continue
            owner, name = int(items.owner[row]), names[items.path[row]]
            if objects.home[row] >= 0:
                home = objects.path_of(row)
                whole = wholes.setdefault((owner, home), {})
                _put(whole, name[len(home) + 1 :].split(SEPARATOR), value)
            else:
                self._values.take(_tag(name), value, int(step[owner]), int(ts_ns[owner]))
        for (owner, home), whole in wholes.items():
            self._values.take(_tag(home), whole, int(step[owner]), int(ts_ns[owner]))

    def _times(self, value_of: "_Named") -> Array:
        ts_ns = nanoseconds(value_of[TIMESTAMP])
        if self.started_unix_ns is not None:
            runtime = value_of[RUNTIME]
            is_time = (ts_ns == UNKNOWN) & (runtime >= 0) & (runtime < _LATEST_S)
            passed = np.rint(np.where(is_time, runtime, 0) * _NS_PER_S).astype(np.int64)
            ts_ns = np.where(is_time, self.started_unix_ns + passed, ts_ns)
        return ts_ns

    def _count_damage(self, broken: int) -> None:
        self._values.say("messages that are damaged: what is before the damage was read", broken)


class _Named:
    """The number that each record has under a name; NaN where it has none."""

    def __init__(self, items: Items, names: list[str], records: int) -> None:
        self._items, self._records = items, records
        self._numbers = {_tag(name): number for number, name in enumerate(names)}

    def __getitem__(self, name: str) -> Array:
        found = np.full(self._records, np.nan)
        number = self._numbers.get(name)
        if number is not None:
            rows = np.flatnonzero((self._items.path == number) & self._items.is_number)
            found[self._items.owner[rows]] = self._items.number[rows]
        return found


def _tag(path: str) -> str:
    return path.replace(SEPARATOR, ".")


def _steps(block: Block, inside: Fields, value_of: _Named) -> Array:
    """W&B's own step of each record."""
    logged = value_of[STEP]
    is_step = np.isfinite(logged) & (np.abs(logged) < _EXACT)
    step = np.where(is_step, np.where(is_step, logged, 0).astype(np.int64), UNKNOWN)
    messages = inside.of(_STEP, BYTES)
    numbers = scan(block, messages.start, messages.end).fields.of(_STEP_NUMBER, VARINT)
    step[messages.owner] = 0
    step[messages.owner[numbers.owner]] = numbers.value.view(np.int64)
    return step


def _filled(value: Array, last: dict[str, float], name: str) -> Array:
    """Where a record has no value, that of the record before it."""
    latest = np.maximum.accumulate(np.where(np.isnan(value), -1, np.arange(len(value))))
    filled: Array = np.where(latest >= 0, value[latest], last.get(name, np.nan))
    if len(filled):
        last[name] = float(filled[-1])
    return filled


class _Objects:
    """Which items are parts of an object with a type, such as an image or a histogram."""

    def __init__(self, items: Items, names: list[str]) -> None:
        numbers = {name: number for number, name in enumerate(names)}
        for name in names:
            for above in _above(name):
                numbers.setdefault(above, len(numbers))
        parents = [-1] * (len(numbers) + 1)  # the last is that of an item without a path
        for name, number in numbers.items():
            above, separator, _ = name.rpartition(SEPARATOR)
            parents[number] = numbers.get(above, -1) if separator else -1
        self._paths, self._size = list(numbers), len(numbers)
        self._owner = items.owner
        parent = np.array(parents, dtype=np.int64)
        ends = [name.endswith(SEPARATOR + TYPE) for name in numbers]
        is_type = np.array([*ends, False])
        objects = self._keys(parent[items.path][is_type[items.path]], is_type[items.path])
        self.home = np.full(len(items.path), -1, dtype=np.int64)  # the outermost, by its path
        inside = parent[items.path]
        while len(objects) and (inside >= 0).any():
            is_home = (inside >= 0) & np.isin(self._keys(inside), objects)
            self.home = np.where(is_home, inside, self.home)
            inside = np.where(inside >= 0, parent[inside], -1)

    def _keys(self, path: Array, rows: Array | slice = slice(None)) -> Array:
        """One number for a record and a path."""
        keys: Array = self._owner[rows] * (self._size + 1) + path
        return keys

    def path_of(self, row: int) -> str:
        return self._paths[int(self.home[row])]


def _above(path: str) -> list[str]:
    keys = path.split(SEPARATOR)
    return [SEPARATOR.join(keys[:count]) for count in range(1, min(len(keys), _DEEPEST))]


def _put(parts: dict[str, Any], keys: list[str], value: Any) -> None:
    for key in keys[:-1]:
        inner = parts.setdefault(key, {})
        if not isinstance(inner, dict):
            return  # an object and a value of the same name: the first counts
        parts = inner
    parts[keys[-1]] = value
