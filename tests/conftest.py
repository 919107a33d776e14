import signal
from pathlib import Path

import pytest

from tests.installed import install

pytest_plugins = ["pytester", "tests.rules.processes", "tests.rules.skips"]

TESTS = Path(__file__).parent

# Folders whose tests all start processes or a browser.
SLOW_FOLDERS = ("browser", "faults", "frameworks", "loops", "processes")

# Folders whose tests depend on the clock, and why.
TIMING_FOLDERS = {
    "browser": "pages answer within seconds",
    "frameworks": "the framework's tracer starts within the window",
}

# Fixtures that start one; every test that uses them has the mark.
SLOW_FIXTURES = {"client", "installed", "serve"}


@pytest.fixture(scope="session")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The Python of a fresh environment with Strobe in it, editable."""
    pytest.importorskip("hatchling")
    return install(tmp_path_factory.mktemp("installed"), editable=True)


def pytest_configure(config):
    """A shell that runs tests in the background, or nohup, has signals ignored, and children
    inherit that: those that are to be interrupted would not be."""
    for number, handler in (
        (signal.SIGINT, signal.default_int_handler), (signal.SIGHUP, signal.SIG_DFL)
    ):  # fmt: skip
        if signal.getsignal(number) == signal.SIG_IGN:
            signal.signal(number, handler)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        folder = item.path.relative_to(TESTS).parts[0]
        if folder in SLOW_FOLDERS or SLOW_FIXTURES & {*getattr(item, "fixturenames", ())}:
            item.add_marker(pytest.mark.slow)
        if folder in TIMING_FOLDERS:
            item.add_marker(pytest.mark.timing(TIMING_FOLDERS[folder]))
