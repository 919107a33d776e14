"""What a W&B run says about itself: its settings, its results, and where it ran."""

import json
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from strobe.ingest.formats.event_files.messages import Fields, scan, submessages
from strobe.ingest.formats.trackers.logged_values import LoggedValues, flattened, is_media
from strobe.ingest.formats.wandb import items as item_columns
from strobe.ingest.formats.wandb.items import SEPARATOR, Paths
from strobe.ingest.formats.xplane.wire import Block, fields, signed

RUN, SUMMARY, CONFIG, EXIT, ENVIRONMENT = 17, 3, 5, 18, 26
RECORDS = (RUN, CONFIG, EXIT, ENVIRONMENT)  # of which there are few
_UPDATE, _REMOVE = 1, 2
_KEY, _NESTED_KEY, _VALUE_JSON = 1, 2, 16
_RUN_CONFIG, _RUN_SUMMARY, _START, _GIT = 4, 5, 17, 21
_NAME = 8
_RUN_TEXTS = {
    1: "run", 2: "entity", 3: "project", 6: "group", 7: "job_type", _NAME: "name", 9: "notes",
    12: "sweep", 13: "host",
}  # fmt: skip
_TAGS, _HOST = 10, "host"
_ENVIRONMENT_TEXTS = {1: "system", 2: "python", 6: "program", 12: "host", 18: "gpu"}
_GIT_TEXTS = {1: "repository", 2: "commit"}
_INTERNAL = "_"  # names that begin with it are W&B's own
_LATEST_S = 1 << 33

Broken = Callable[[], None]


class Beginning(NamedTuple):
    """What is known of a run before it is read."""

    name: str = ""
    unix_ns: int | None = None


class RunFacts:
    """Later records replace earlier ones, key by key."""

    def __init__(self, broken: Broken) -> None:
        self._broken = broken
        self._config: dict[str, Any] = {}
        self._summary: dict[str, Any] = {}
        self._about: dict[str, Any] = {}
        self._tags: list[str] = []
        self._paths = Paths()
        self.started_unix_ns: int | None = None

    @property
    def host(self) -> str:
        return str(self._about.get(_HOST, ""))

    def take(self, kind: int, record: bytes) -> None:
        if kind == RUN:
            self._take_run(record)
        elif kind == CONFIG:
            self._update(self._config, record)
        elif kind == ENVIRONMENT:
            self._take_texts(record, _ENVIRONMENT_TEXTS)
        else:
            codes = [v for n, v in fields(record, self._broken) if n == 1 and isinstance(v, int)]
            self._about["exit_code"] = signed(codes[-1]) if codes else 0

    def take_summaries(self, block: Block, records: Fields) -> None:
        """The summary records of a piece, of which there is one per step: the last values count."""
        inside = scan(block, records.start, records.end).fields
        if (inside.number == _REMOVE).any():
            for start, end in zip(records.start.tolist(), records.end.tolist(), strict=True):
                self._update(self._summary, block.text(start, end))
            return
        items = item_columns.read(block, submessages(block, inside, _UPDATE), self._paths)
        names = self._paths.table()
        paths, from_end = np.unique(items.path[::-1], return_index=True)
        rows = len(items.path) - 1 - from_end[paths >= 0]
        for row in np.sort(rows).tolist():
            try:
                value = items.value(row)
            except (ValueError, RecursionError):
                self._broken()
                continue
            _set(self._summary, names[items.path[row]].split(SEPARATOR), value)

    def store(self, values: LoggedValues) -> None:
        config, summary = (
            {name: value for name, value in facts.items() if not name.startswith(_INTERNAL)}
            for facts in (self._config, self._summary)
        )
        values.add_hyperparameters(config)
        results = dict(flattened(summary)).items()
        values.add_facts("train", {name: value for name, value in results if not is_media(value)})
        values.add_facts("custom", {**self._about, "tags": self._tags})

    def _take_run(self, record: bytes) -> None:
        self._take_texts(record, _RUN_TEXTS)
        for number, value in fields(record, self._broken):
            if not isinstance(value, bytes):
                continue
            if number in (_RUN_CONFIG, _RUN_SUMMARY):
                self._update(self._config if number == _RUN_CONFIG else self._summary, value)
            elif number == _TAGS:
                self._tags.append(value.decode("utf-8", "replace"))
            elif number == _START:
                self.started_unix_ns = _nanoseconds(value, self._broken)
            elif number == _GIT:
                self._take_texts(value, _GIT_TEXTS)

    def _take_texts(self, record: bytes, names: dict[int, str]) -> None:
        for number, value in fields(record, self._broken):
            if number in names and isinstance(value, bytes):
                self._about[names[number]] = value.decode("utf-8", "replace")

    def _update(self, facts: dict[str, Any], record: bytes) -> None:
        for number, item in fields(record, self._broken):
            if number not in (_UPDATE, _REMOVE) or not isinstance(item, bytes):
                continue
            keys, value = self._item(item)
            if keys and number == _UPDATE:
                _set(facts, keys, value)
            elif keys:
                _remove(facts, keys)

    def _item(self, item: bytes) -> tuple[list[str], Any]:
        keys: list[str] = []
        value: Any = None
        for number, part in fields(item, self._broken):
            if not isinstance(part, bytes):
                continue
            if number in (_KEY, _NESTED_KEY):
                keys.append(part.decode("utf-8", "replace"))
            elif number == _VALUE_JSON:
                try:
                    value = json.loads(part)
                except (ValueError, RecursionError):
                    self._broken()
        return keys, value


def beginning(record: bytes) -> Beginning:
    """By the record of the run."""
    found = Beginning()
    for number, value in fields(record, _ignored):
        if number == _START and isinstance(value, bytes):
            found = found._replace(unix_ns=_nanoseconds(value, _ignored))
        elif number == _NAME and isinstance(value, bytes):
            found = found._replace(name=value.decode("utf-8", "replace"))
    return found


def _nanoseconds(timestamp: bytes, broken: Broken) -> int | None:
    parts = {n: v for n, v in fields(timestamp, broken) if isinstance(v, int)}
    seconds, nanos = parts.get(1, 0), parts.get(2, 0)
    return seconds * 10**9 + nanos if 0 < seconds < _LATEST_S and nanos < 10**9 else None


def _set(facts: dict[str, Any], keys: list[str], value: Any) -> None:
    for inner in _inner(facts, keys, is_new=True):
        inner[keys[-1]] = value


def _remove(facts: dict[str, Any], keys: list[str]) -> None:
    for inner in _inner(facts, keys, is_new=False):
        inner.pop(keys[-1], None)


def _inner(facts: dict[str, Any], keys: list[str], *, is_new: bool) -> Iterator[dict[str, Any]]:
    """The object that the last key is in, if there is one."""
    for key in keys[:-1]:
        inner = facts.get(key)
        if not isinstance(inner, dict):
            if not is_new:
                return
            inner = facts[key] = {}
        facts = inner
    yield facts


def _ignored() -> None:
    """Only the beginning of the file is looked at: damage is counted when it is read."""
