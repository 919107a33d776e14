"""Processes that build ranks beside each other, and end when we are interrupted."""

import contextlib
import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # most who build have one rank and need neither
    import subprocess
    from concurrent.futures import ThreadPoolExecutor


class _Running:
    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.processes: set[subprocess.Popen[str]] = set()
        self.is_over = False


_running = _Running()


@contextlib.contextmanager
def pool(count: int) -> "Iterator[ThreadPoolExecutor]":
    """Threads that wait for processes. An exception here ends the processes, and none is begun."""
    from concurrent.futures import ThreadPoolExecutor

    global _running
    _running = running = _Running()
    workers = ThreadPoolExecutor(count)
    try:
        yield workers
    except BaseException:
        with running.lock:
            running.is_over = True
            for process in running.processes:
                process.kill()
        raise
    finally:
        workers.shutdown(cancel_futures=True)


def run(command: list[str], environment: dict[str, str]) -> "subprocess.CompletedProcess[str]":
    """Like subprocess.run, from a thread of the pool."""
    import subprocess

    running = _running
    with running.lock:
        if running.is_over:
            return subprocess.CompletedProcess(command, -9, "", "interrupted")
        process = subprocess.Popen(
            command, env=environment, text=True, stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
        )  # fmt: skip
        running.processes.add(process)
    try:
        _, errors = process.communicate()
    finally:
        with running.lock:
            running.processes.discard(process)
    return subprocess.CompletedProcess(command, process.returncode, "", errors)
