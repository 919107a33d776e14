"""Python processes that have imported torch already, for tests that are not about start-up.

Importing torch takes longer than most trainings here. A server for each process of pytest imports
it once; each "process" is a fork of it. `python` and `recorded` are used like those of
`tests.faults.processes`.
"""

import atexit
import functools
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.faults import processes

HERE = Path(__file__).parent
# The second is imported by the first step of an optimizer.
TORCH = ("torch", "torch._dynamo", "torch.utils.data")


def python(*words: object, **options: object) -> subprocess.CompletedProcess:
    """Run a script, or the words that `recorded` returns, to its end."""
    is_recorded = words[:2] == ("-m", "strobe")
    return processes.python(*(words if is_recorded else (*client(), *words)), **options)


def recorded(run: object, *words: object) -> tuple[object, ...]:
    """The words after `python` that record a script to a run, without a summary."""
    script = next(at for at, word in enumerate(words) if str(word).endswith(".py"))
    command = (sys.executable, *client(), *words[script:])
    return (*processes.recorded(run, *words[:script]), "--", *command)


@functools.cache
def client(*packages: str) -> tuple[object, ...]:
    """The words after `python` and before the script; its process has imported these packages."""
    folder = tempfile.mkdtemp(prefix="warm-")
    address = Path(folder) / "socket"
    command = [sys.executable, HERE / "server.py", address, *(packages or TORCH)]
    server = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    atexit.register(_end, server, folder)
    assert server.stdout is not None and server.stdout.readline() == b"ready\n"
    return "-I", "-S", HERE / "client.py", address


def _end(server: subprocess.Popen, folder: str) -> None:
    assert server.stdin is not None and server.stdout is not None
    server.stdin.close()
    server.wait(60)
    server.stdout.close()
    shutil.rmtree(folder, ignore_errors=True)
