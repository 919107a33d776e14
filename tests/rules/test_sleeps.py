"""Tests wait for events. A long sleep is that of a process that the test ends or interrupts."""

import re

from tests.rules.skips import ROOT

LONGEST_S = 0.4
# Longer ones, in files or the scripts that they hold: why nobody waits for their end, or must.
LONGER = {
    "tests/cli/test_report.py": ({60.0, 4.0}, "both are interrupted by Ctrl-C, which is the test"),
    "tests/faults/test_disk.py": (
        {0.5},
        "what is written at the start is there before it vanishes",
    ),
    "tests/ingest/recording/test_early_windows.py": ({600.0}, "the process is killed"),
    "tests/processes/test_process.py": ({600.0}, "the process is killed"),
    "tests/web/answering/odd_worker.py": ({60.0}, "the worker is killed"),
}
_SLEEP = re.compile(r"\bsleep\((\d+(?:\.\d+)?)\)")


def test_no_sleep_is_long_without_a_reason():
    found = {}
    for path in sorted((ROOT / "tests").rglob("*.py")):
        seconds = {float(hit[1]) for hit in _SLEEP.finditer(path.read_text(encoding="utf-8"))}
        if long := {one for one in seconds if one > LONGEST_S}:
            found[path.relative_to(ROOT).as_posix()] = long
    assert found == {file: seconds for file, (seconds, _) in LONGER.items()}
