"""A run that is a folder: `meta.yaml`, and a file for each metric, parameter and tag."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from strobe.ingest.formats.mlflow import images
from strobe.ingest.formats.mlflow.facts import SOURCE, store_facts
from strobe.ingest.formats.trackers.logged_values import LoggedValues
from strobe.ingest.importing.sources import Found, files_below
from strobe.ingest.trace import progress
from strobe.ingest.trace.codes import Array
from strobe.ingest.trace.metric_rows import UNKNOWN
from strobe.ingest.trace.spans import Vocabulary
from strobe.ingest.trace.trace import Trace

META = "meta.yaml"
_METRICS, _PARAMS, _TAGS, _ARTIFACTS = "metrics", "params", "tags", "artifacts"
_LARGEST_META = 1 << 20
_LARGEST_VALUE = 1 << 20  # of a parameter or tag; MLflow allows less
_PIECE_BYTES = 8 << 20
_LINE = re.compile(r"([A-Za-z_]+):[ \t]*(.*)")
_STATUS = {"1": "RUNNING", "2": "SCHEDULED", "3": "FINISHED", "4": "FAILED", "5": "KILLED"}
_LATEST_MS = (1 << 33) * 1000


def runs(meta: Path) -> list[Found]:
    """The run that this file describes; none if it is that of an experiment or another tool."""
    facts = _meta(meta)
    if not _is_run(facts) or facts.get("lifecycle_stage") == "deleted":
        return []
    folder = meta.parent
    paths = [path for name in (_METRICS, _PARAMS, _TAGS) for path in files_below(folder / name)]
    began = facts.get("start_time", "")
    began_ms = int(began) if began.isdecimal() and len(began) < 15 else 0
    return [
        Found(
            (meta, *paths), rank=0, folder=folder, first_unix_ns=began_ms * 10**6 or None,
            ignored=tuple(files_below(folder / _ARTIFACTS)), run_name=facts.get("run_name", ""),
        )
    ]  # fmt: skip


def read(folder: Path, words: Vocabulary) -> Trace:
    trace = Trace(words, is_unix=True)

    def say(what: str, count: int) -> None:
        trace.said.add(folder.name, what, count)

    values = LoggedValues(trace.metrics, SOURCE, None, say)
    for name, path in _named_files(folder / _METRICS):
        try:
            _take_metric(values, name, path, trace)
        except OSError as error:
            trace.said.add(name, f"this metric cannot be read: {error.strerror or error}")
    params, tags = (_texts(folder / part, trace) for part in (_PARAMS, _TAGS))
    meta = _meta(folder / META)
    meta["status"] = _STATUS.get(meta.get("status", ""), "")
    meta["experiment"] = _meta(folder.parent / META).get("name", "")
    meta["run"], meta["name"] = meta.get("run_id", folder.name), meta.get("run_name", "")
    store_facts(values, params, tags, meta)
    images.take(folder / _ARTIFACTS, values)
    return trace


def _named_files(folder: Path) -> Iterator[tuple[str, Path]]:
    """A name with a slash is a file in a folder."""
    for path in files_below(folder):
        yield path.relative_to(folder).as_posix(), path


def _texts(folder: Path, trace: Trace) -> dict[str, str]:
    found: dict[str, str] = {}
    for name, path in _named_files(folder):
        try:
            with path.open("rb") as file:
                found[name] = file.read(_LARGEST_VALUE).decode("utf-8", "replace")
        except OSError as error:
            trace.said.add(name, f"this file cannot be read: {error.strerror or error}")
    return found


def _take_metric(values: LoggedValues, name: str, path: Path, trace: Trace) -> None:
    """Lines of time, value and step; newer ones have a dataset behind them."""
    tag = values.tags[name]
    with path.open("rb") as file:
        rest = b""
        while data := file.read(_PIECE_BYTES):
            progress.report(len(data))
            whole, newline, rest = (rest + data).rpartition(b"\n")
            lost = _take_lines(values, tag, whole + newline)
            trace.said.add(name, "lines that are no metric were left out", lost)
        # What has no end may be half a number, which would be a number all the same.
        trace.said.add(name, "the file ends within a line, which was left out", bool(rest.strip()))


def _take_lines(values: LoggedValues, tag: int, data: bytes) -> int:
    """The number of lines that cannot be read."""
    found, lost = _columns(data), 0
    if found is None:
        rows = [_row(line) for line in data.split(b"\n") if line.strip()]
        lost = rows.count(None)
        good = [row for row in rows if row is not None]
        found = tuple(np.array(column) for column in zip(*good, strict=True))
    if found:
        time_ms, value, step = found
        values.add_scalars(np.full(len(value), tag), step, nanoseconds(time_ms), value)
    return lost


def nanoseconds(time_ms: Array) -> Array:
    is_time = (time_ms > 0) & (time_ms < _LATEST_MS)
    known: Array = np.where(is_time, np.where(is_time, time_ms, 0) * 10**6, UNKNOWN)
    return known


def _columns(data: bytes) -> tuple[Array, ...] | None:
    """All lines at once; None if any of them is not time, value and step."""
    text = np.frombuffer(data, dtype=np.uint8)
    lines = int((text == ord("\n")).sum())
    ends = np.flatnonzero((text == ord("\n")) | (text == ord(" ")))
    is_regular = len(ends) == 3 * lines and (text[ends].reshape(-1, 3)[:, 2] == ord("\n")).all()
    words = data.split()
    if not lines or not is_regular or len(words) != 3 * lines:
        return None
    table = np.array(words).reshape(-1, 3)
    try:
        return (
            table[:, 0].astype(np.int64), table[:, 1].astype(np.float64),
            table[:, 2].astype(np.int64),
        )  # fmt: skip
    except (ValueError, OverflowError):
        return None


def _row(line: bytes) -> tuple[int, float, int] | None:
    words = line.split()
    try:
        time_ms, value = float(words[0]), float(words[1])
        step = int(words[2]) if len(words) > 2 else 0
    except (ValueError, IndexError):
        return None
    is_known = 0 < time_ms < _LATEST_MS
    return (int(time_ms) if is_known else 0, value, step) if abs(step) < 1 << 63 else None


def _is_run(facts: dict[str, str]) -> bool:
    return ("run_id" in facts or "run_uuid" in facts) and "artifact_uri" in facts


def _meta(path: Path) -> dict[str, str]:
    """The names and values of a flat YAML file."""
    try:
        with path.open("rb") as file:
            lines = file.read(_LARGEST_META).decode("utf-8", "replace").splitlines()
    except OSError:
        return {}
    matches = (_LINE.fullmatch(line.rstrip()) for line in lines)
    return {match[1]: _unquoted(match[2]) for match in matches if match}


def _unquoted(text: str) -> str:
    if len(text) > 1 and text[0] == text[-1] == "'":
        return text[1:-1].replace("''", "'")
    if len(text) > 1 and text[0] == text[-1] == '"':
        try:
            return str(json.loads(text))
        except ValueError:
            return text[1:-1]
    return "" if text in ("null", "~") else text
