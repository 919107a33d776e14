"""Programs that compute next to this one: real processes."""

import os
import subprocess
import sys
import time

import pytest

from strobe.collect.host.other_programs import OtherPrograms

pytestmark = pytest.mark.skipif(not os.path.exists("/proc/self/stat"), reason="no /proc")
# It ends by itself if nobody ends it.
BUSY = "import time\nwhile time.process_time() < 60: pass"


def stranger() -> int:
    """A busy process that belongs to nobody of this job: the one that started it has ended."""
    start = f"subprocess.Popen([sys.executable, '-c', {BUSY!r}], stdout=subprocess.DEVNULL)"
    script = f"import subprocess, sys; print({start}.pid)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, check=True)
    return int(done.stdout)


def used(looker, noted, name):
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        looker.look(time.monotonic_ns())
        if noted.get(name):
            return noted[name]
        time.sleep(0.1)
    return 0


@pytest.fixture
def noted():
    return {}


@pytest.fixture
def looker(noted):
    return OtherPrograms(noted.__setitem__, budget_ratio=1e9)


@pytest.mark.slow
def test_a_busy_program_is_named_with_its_time(looker, noted):
    process = stranger()
    try:
        with open(f"/proc/{process}/stat", encoding="utf-8") as file:
            name = file.read().partition("(")[2].rpartition(")")[0]
        assert used(looker, noted, name) >= 50_000_000
    finally:
        os.kill(process, 9)


def test_looks_keep_to_their_budget(noted):
    looker = OtherPrograms(noted.__setitem__, budget_ratio=1e-9)
    looker.look(1)
    before = looker._before
    looker.look(2)
    assert looker._before is before
