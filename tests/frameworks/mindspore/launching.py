"""Several MindSpore processes at once, as `msrun` starts them."""

import os
import socket
from pathlib import Path

from tests.frameworks import environment


def msrun(workers: int) -> list[str | Path]:
    """What stands before the name of the script."""
    count = [f"--worker_num={workers}", f"--local_worker_num={workers}"]
    rest = [f"--master_port={_free_port()}", "--join=True", "--log_dir=logs"]
    return [_home() / "msrun", *count, *rest]


def path_variable() -> str:
    """msrun looks for Python there."""
    return f"{_home()}:{os.environ['PATH']}"


def _home() -> Path:
    return environment.python_of("mindspore").parent


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])
