"""A machine that other programs use, as laptops and shared clusters are."""

import contextlib
import subprocess
import sys
from collections.abc import Iterator

BUSY_LOOPS = 2


@contextlib.contextmanager
def crowded(is_wanted: bool = True) -> Iterator[None]:
    """Two loops that never rest, until the block ends."""
    count = BUSY_LOOPS if is_wanted else 0
    loops = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(count)]
    try:
        yield
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()
