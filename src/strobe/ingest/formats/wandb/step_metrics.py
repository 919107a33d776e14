"""Which metrics count along another one (`wandb.define_metric`), not along W&B's own step."""

from collections.abc import Callable

import numpy as np

from strobe.ingest.formats.wandb.items import SEPARATOR
from strobe.ingest.formats.xplane.wire import fields
from strobe.ingest.trace.codes import Array

_NAME, _GLOB, _STEP_METRIC, _STEP_METRIC_INDEX = 1, 2, 4, 5
_OWN = ("_step", "_timestamp", "_runtime")


class StepMetrics:
    """Definitions apply to the whole run, wherever they are in the file."""

    def __init__(self) -> None:
        self.last: dict[str, float] = {}  # the last value of each step metric
        self._defined: list[str] = []  # in order: older files refer to them by number
        self._exact: dict[str, str | int] = {}
        self._globs: dict[str, str | int] = {}

    def define(self, record: bytes, broken: Callable[[], None]) -> None:
        found: dict[int, str | int] = {}
        for number, value in fields(record, broken):
            found[number] = value.decode("utf-8", "replace") if isinstance(value, bytes) else value
        name, glob = str(found.get(_NAME, "")), str(found.get(_GLOB, ""))
        along = found.get(_STEP_METRIC) or found.get(_STEP_METRIC_INDEX) or ""
        self._defined.append(name or glob)
        if name and along:
            self._exact[name] = along
        elif glob and along:
            self._globs[glob] = along

    def by_metric(self, names: list[str]) -> dict[str, Array]:
        """The numbers of the paths that count along each step metric, by its path."""
        found: dict[str, list[int]] = {}
        if not self._exact and not self._globs:
            return {}
        for number, name in enumerate(names):
            metric = self._of(name.replace(SEPARATOR, "."))
            if metric and metric not in _OWN and metric != name:
                found.setdefault(metric, []).append(number)
        return {metric: np.array(numbers) for metric, numbers in found.items()}

    def _of(self, name: str) -> str:
        along = self._exact.get(name)
        if along is None:
            globs = (glob for glob in self._globs if _matches(glob, name))
            along = self._globs.get(next(globs, ""), "")
        if isinstance(along, int):  # counted from 1
            return self._defined[along - 1] if 0 < along <= len(self._defined) else ""
        return along


def _matches(glob: str, name: str) -> bool:
    """W&B allows one star, at the end."""
    return name.startswith(glob[:-1]) if glob.endswith("*") else name == glob
