"""The servers of this user: what each wrote down of itself, and whether it still runs.

A file for each port, readable by its owner alone since the token stands in it, in
`$XDG_STATE_HOME/strobe/servers`. A process is told from another that has its number by the moment
it was started.
"""

import contextlib
import json
import os
import platform
import signal
import time
import urllib.error
import urllib.request
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

from strobe.model.manifest import write_json
from strobe.store.user_cache import user_cache

# A server that works ends within its last words and a little; then it is ended.
_END_S = 10.0
_ANSWER_S = 3.0

State = Literal["running", "not answering", "ended", "elsewhere"]


@dataclass(frozen=True)
class Instance:
    pid: int
    start_ticks: int
    machine: str
    host: str
    port: int
    base_dir: str
    token: str
    started_unix_s: float

    @property
    def address(self) -> str:
        """Where a browser on this machine finds it."""
        host = {"0.0.0.0": platform.node(), "::": platform.node(), "": "127.0.0.1"}.get(
            self.host, self.host
        )
        return f"http://{f'[{host}]' if ':' in host else host}:{self.port}"

    @property
    def link(self) -> str:
        return f"{self.address}/?token={self.token}"

    @property
    def is_alive(self) -> bool:
        return start_ticks(self.pid) == self.start_ticks

    @property
    def state(self) -> State:
        if self.machine != platform.node():
            return "elsewhere"
        if not self.is_alive:
            return "ended"
        return "running" if _answers(self) else "not answering"


def this_process(host: str, port: int, base_dir: Path, token: str) -> Instance:
    pid = os.getpid()
    machine, now = platform.node(), time.time()
    return Instance(pid, start_ticks(pid) or 0, machine, host, port, str(base_dir), token, now)


def folder() -> Path:
    """Made if it is not there; of this user alone."""
    state = os.environ.get("XDG_STATE_HOME") or os.path.expanduser("~/.local/state")
    for home in (Path(state) / "strobe", user_cache()):
        with contextlib.suppress(OSError):
            (home / "servers").mkdir(parents=True, exist_ok=True)
            os.chmod(home / "servers", 0o700)
            if os.access(home / "servers", os.W_OK):
                return home / "servers"
    raise OSError("no folder to write to")


def log_file(port: int) -> Path:
    return folder() / f"{platform.node()}-{port}.log"


def write(instance: Instance) -> None:
    path = _file(instance.machine, instance.port)
    before = os.umask(0o077)
    try:
        write_json(path, asdict(instance))
        os.chmod(path, 0o600)
    finally:
        os.umask(before)


def remove(instance: Instance) -> None:
    """Its note, unless another server has taken its place."""
    if _read(_file(instance.machine, instance.port)) == instance:
        _file(instance.machine, instance.port).unlink(missing_ok=True)


def all_noted() -> list[Instance]:
    """Of this machine first, by port."""
    found = [one for path in folder().glob("*.json") if (one := _read(path)) is not None]
    return sorted(found, key=lambda one: (one.machine != platform.node(), one.machine, one.port))


def at_port(port: int) -> Instance | None:
    return _read(_file(platform.node(), port))


def end(instance: Instance) -> bool:
    """Whether it went of its own accord; otherwise it was made to."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(instance.pid, signal.SIGTERM)
    until = time.monotonic() + _END_S
    while instance.is_alive and time.monotonic() < until:
        time.sleep(0.05)
    is_gone = not instance.is_alive
    if not is_gone:
        with contextlib.suppress(ProcessLookupError):
            os.kill(instance.pid, signal.SIGKILL)
    remove(instance)
    return is_gone


def start_ticks(pid: int) -> int | None:
    """When a process was started, in the kernel's ticks; None if it does not run."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
    except OSError:
        return None
    return None if fields[0] == b"Z" else int(fields[19])


def _file(machine: str, port: int) -> Path:
    return folder() / f"{machine}-{port}.json"


def _read(path: Path) -> Instance | None:
    try:
        return Instance(**json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return None


def _answers(instance: Instance) -> bool:
    # Not through a proxy: it would not find this machine's loopback.
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    host = "127.0.0.1" if instance.host in ("0.0.0.0", "", "localhost") else instance.host
    host = "[::1]" if host == "::" else f"[{host}]" if ":" in host else host
    request = urllib.request.Request(
        f"http://{host}:{instance.port}/api/health",
        headers={"Authorization": f"Bearer {instance.token}"},
    )
    try:
        with opener.open(request, timeout=_ANSWER_S) as answer:
            return bool(answer.status == 200)
    except (OSError, urllib.error.URLError, ValueError):
        return False
