"""What was recorded and measured, kept in a folder: a second look costs no second training."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.zoo import running
from benchmarks.zoo.catalogue import Script


class Kept:
    """A folder for each script: its recording, its times, what torch's matcher said of it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def advice(self, script: Script) -> dict[str, Any]:
        """Of the recording; the rules are asked anew each time."""
        run = self._place(script) / "run"
        if not (run / "run.json").exists():
            running.record(script, run)
        return running.advice_of(str(run))

    def seconds(self, script: Script, number: int, **options: bool) -> float:
        """What the stopwatch showed at its turn `number`."""
        file = self._place(script) / f"seconds_{number}.json"
        measured: float = _once(file, lambda: running.seconds_of(script, **options))
        return measured

    def patterns(self, script: Script) -> list[str]:
        said: list[str] = _once(
            self._place(script) / "patterns.json", lambda: running.patterns_in(script)
        )
        return said

    def traceml(self, script: Script, command: str) -> dict[str, str]:
        said: dict[str, str] = _once(
            self._place(script) / "traceml.json", lambda: running.traceml_of(script, command)
        )
        return said

    def _place(self, script: Script) -> Path:
        place = self._folder / script.name
        place.mkdir(parents=True, exist_ok=True)
        return place


def _once(file: Path, measure: Callable[[], Any]) -> Any:
    if not file.exists():
        file.write_text(json.dumps(measure()))
    return json.loads(file.read_text())
