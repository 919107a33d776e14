"""Scripts as they are, under `strobe run`, and what is in their runs."""

from pathlib import Path

from strobe.model.metric_tables import AUTOMATIC
from tests.faults.processes import ask, lines_of_ours, python, recorded, write

OF_SCRIPTS = f"""
select tag, step, value, source from scalars where source <> '{AUTOMATIC}'
order by tag, step, ts_ns
"""


def scalars(run: Path) -> list[tuple[str, int, float]]:
    """What a script logged, in the order of tags and steps."""
    return [(tag, step, value) for tag, step, value, _ in ask(run, OF_SCRIPTS)]


def sources(run: Path) -> set[str]:
    return {source for *_, source in ask(run, OF_SCRIPTS)}


def record(folder: Path, text: str, *words: str) -> Path:
    """Where the script is recorded to; it must succeed, and nothing of ours be reported."""
    script = write(folder, text)
    done = python(*recorded(folder / "run", script, *words), cwd=folder)
    assert done.returncode == 0, done.stderr
    assert lines_of_ours(done) == []
    return folder / "run"
