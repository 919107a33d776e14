import signal
from pathlib import Path

import pytest

from tests.installed import install


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
