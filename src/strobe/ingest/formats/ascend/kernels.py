"""kernel_details.csv, or msprof's op_summary: what the NPU computed, and every collective."""

import json
import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from strobe.ingest.formats.ascend import csv_table as ascend_csv
from strobe.ingest.formats.ascend.numbers import NEVER, integers, lengths, moments
from strobe.ingest.trace.codes import Array, Codes, distinct
from strobe.ingest.trace.problems import Problems

_NAMES: ascend_csv.Names = {
    "ts_ns": ("Start Time", "Task Start Time"),
    "dur_ns": ("Duration", "Task Duration"),
    "name": ("Name", "Op Name"),
    "type": ("Type", "OP Type"),
    "core": ("Accelerator Core", "Task Type"),
    "stream": ("Stream ID",),
    "task": ("Task ID",),
    "step": ("Step ID",),
    "blocks": ("Block Dim", "Block Num"),
    "device": ("Device_id",),
}
_NEEDED = ("ts_ns", "dur_ns", "name")
_NOTHING_TOLD = ("", "N/A", "NA", "UNKNOWN")
_COMMUNICATION = re.compile(r"HCCL|COMMUNICATION|LCCL", re.IGNORECASE)
_AI_CPU = re.compile(r"AI_?CPU", re.IGNORECASE)
_STEP = re.compile(r"(\d{1,15})$")


@dataclass
class Kernels:
    """Columns in order of time; texts are numbers into the lists, -1 where unknown."""

    columns: dict[str, Array]
    names: list[str]
    types: list[str]
    cores: list[str]
    steps: list[str]

    def __len__(self) -> int:
        return len(self.columns["ts_ns"])

    @property
    def is_collective(self) -> Array:
        flags = [bool(_COMMUNICATION.search(core)) for core in self.cores]
        found: Array = _looked_up(self.columns["core"], flags).astype(np.bool_)
        return found

    def shown(self) -> list[str]:
        """For each distinct (name, type, core) what it is called: see `shown_code`."""
        return [self._shown(*key) for key in self._keys()[0]]

    @property
    def shown_code(self) -> Array:
        return self._keys()[1]

    def step_numbers(self) -> Array:
        """The recorder's own number of the step each belongs to; -1 where it is not told."""
        found = [_STEP.search(step) for step in self.steps]
        numbers = [int(match.group(1)) if match else -1 for match in found]
        return _looked_up(self.columns["step"], numbers, -1)

    def grids(self) -> tuple[list[str], Array]:
        """The cores that each used, as a grid in JSON, and which of these texts is whose."""
        blocks, back = np.unique(self.columns["blocks"], return_inverse=True)
        return [json.dumps([n, 1, 1]) if n > 0 else "" for n in blocks.tolist()], back

    def _keys(self) -> tuple[list[list[int]], Array]:
        return distinct([self.columns[name] for name in ("name", "type", "core")])

    def _shown(self, name: int, kind: int, core: int) -> str:
        """Types, as op_statistic.csv counts them: names number every single use of a kernel."""
        text = self.types[kind] if kind >= 0 else self.names[name]
        return f"{text} (AI CPU)" if core >= 0 and _AI_CPU.search(self.cores[core]) else text


def no_kernels() -> Kernels:
    return Kernels(dict.fromkeys(_NAMES, np.zeros(0, dtype=np.int64)), [], [], [], [])


def read(paths: list[Path], said: Problems) -> Kernels:
    """What is readable of several files that go on from one another."""
    texts = {name: Codes[str]() for name in ("name", "type", "core", "step")}
    found = []
    for path in paths:
        for part in ascend_csv.parts(path, _NAMES, _NEEDED, said):
            columns = _columns(part, texts)
            timed = (columns["ts_ns"] != NEVER) & (columns["dur_ns"] >= 0)
            said.add(
                path.name, "a line has no time or length and was left out", int((~timed).sum())
            )
            found.append({name: column[timed] for name, column in columns.items()})
    whole = ascend_csv.joined(found, _NAMES)
    kept = _in_order_once(whole)
    said.add(
        "kernel_details.csv", "a line repeats another and was left out",
        len(whole["ts_ns"]) - len(kept),
    )  # fmt: skip
    columns = {name: column[kept] for name, column in whole.items()}
    return Kernels(columns, *(list(texts[name]) for name in ("name", "type", "core", "step")))


def _columns(part: ascend_csv.Part, texts: dict[str, Codes[str]]) -> dict[str, Array]:
    columns = {
        "ts_ns": moments(part.text("ts_ns"), part.unit("ts_ns")),
        "dur_ns": lengths(part.text("dur_ns"), part.unit("dur_ns")),
    }
    for name in ("stream", "task", "blocks", "device"):
        columns[name] = integers(part.text(name))
    for name, codes in texts.items():
        cells = [cell.strip() for cell in part.text(name)]
        known = [-1 if cell.upper() in _NOTHING_TOLD else codes[cell] for cell in cells]
        columns[name] = np.array(known, dtype=np.int64)
    # A kernel without a name is one still.
    nameless = columns["name"] < 0
    columns["name"] = np.where(nameless, texts["name"]["unnamed"], columns["name"])
    return columns


def _in_order_once(columns: dict[str, Array]) -> Array:
    keys = [columns[name] for name in ("name", "task", "stream", "dur_ns", "ts_ns")]
    order = np.lexsort(keys)
    repeats = np.ones(len(order), dtype=np.bool_)
    repeats[:1] = False
    for key in keys:
        repeats[1:] &= np.diff(key[order]) == 0
    return order[~repeats]


def _looked_up(codes: Array, table: list[bool] | list[int], otherwise: int = 0) -> Array:
    found: Array = np.array([*table, otherwise])[codes]
    return found
