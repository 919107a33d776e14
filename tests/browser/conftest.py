import os
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import pytest

pytest.importorskip("torch")
pytest.importorskip("playwright", reason="pip install -r requirements/test.txt")

from filelock import FileLock
from playwright.sync_api import sync_playwright

import strobe
from strobe.ingest.importing.importer import import_traces
from strobe.web import instances, starting
from tests.browser.device_trace import write_device_trace
from tests.browser.looking import chromium, visit
from tests.web.served import HOSTILE, write_run

TRAINING = Path(strobe.__file__).parent / "demo" / "train.py"


@pytest.fixture(scope="session")
def runs(tmp_path_factory):
    """A base directory: our own recordings, a trace of a GPU, a hostile run, a broken one."""
    shared = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        shared = shared.parent  # one recording for all workers of pytest-xdist
    base = shared / "browser" / "base"
    base.parent.mkdir(exist_ok=True)
    with FileLock(base.parent / "lock"):
        if not base.exists():
            unfinished = base.with_name("unfinished")
            _record(unfinished)
            unfinished.rename(base)
    return base


def _record(base):
    base.mkdir()
    for name, options in (("demo", []), ("fixed", ["--workers", "2"])):
        recorder = ["run", "-q", "-o", str(base / name), "--profile-memory"]
        command = [sys.executable, "-m", "strobe", *recorder, str(TRAINING), *options]
        subprocess.run(command, check=True, timeout=300, capture_output=True)
    import_traces([write_device_trace(base.parent / "gpu.json")], base / "gpu")
    write_run(base / "two-ranks", ranks=2, steps=12)
    write_run(base / HOSTILE, steps=8)
    write_run(base / "broken", steps=4)
    (base / "broken" / "run.json").write_text("{ this is no JSON")


@pytest.fixture(scope="session")
def link(runs, tmp_path_factory):
    """The link of a server over these runs, which keeps its notes away from the user's own."""
    home = tmp_path_factory.mktemp("browser-home")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(home))
        patch.setenv("XDG_CACHE_HOME", str(home))
        patch.delenv("STROBE_TOKEN", raising=False)
        instance = starting.start(runs, "127.0.0.1", starting.free_port("127.0.0.1"))
        yield instance.link
        instances.end(instance)


# Of this package, not of the session: its event loop would be in the way of other tests' own.
@pytest.fixture(scope="package")
def browser():
    path = chromium()
    with sync_playwright() as playwright:
        # No sandbox: tests in containers run as root. No GPU: the same everywhere.
        options = ["--no-sandbox", "--disable-gpu", "--force-color-profile=srgb"]
        started = playwright.chromium.launch(executable_path=path, args=options)
        yield started
        started.close()


@pytest.fixture
def looking_at(browser, tmp_path, monkeypatch):
    """A visit to a server over a folder of the test's own."""
    for name in ("XDG_STATE_HOME", "XDG_CACHE_HOME"):
        monkeypatch.setenv(name, str(tmp_path / "home"))
    monkeypatch.delenv("STROBE_TOKEN", raising=False)

    @contextmanager
    def visited(base):
        instance = starting.start(base, "127.0.0.1", starting.free_port("127.0.0.1"))
        try:
            with visit(browser, instance.link) as found:
                yield found
        finally:
            instances.end(instance)

    return visited


@pytest.fixture
def looking(browser, link):
    with visit(browser, link) as found:
        yield found
