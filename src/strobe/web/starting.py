"""Start a server that outlives the command that started it."""

import contextlib
import json
import os
import select
import socket
import subprocess
import sys
from pathlib import Path

import strobe
from strobe.errors import StrobeError, UsageError
from strobe.web import instances
from strobe.web.instances import Instance
from strobe.web.server import Settings, listen, serve, token_to_use

# Importing the server takes a second on a slow disk; a machine under load takes its time.
_READY_S = 60.0
_START = "import sys; sys.path.pop(0); from strobe.web.starting import child; child()"
# Free ports are looked for from the usual one on.
DEFAULT_PORT = 8080
_PORTS_TRIED = 50


def checked_base_dir(given: str | None) -> Path:
    """Raises UsageError. Without a name: where `strobe run` puts its runs, or else here."""
    path = Path(given) if given is not None else Path("strobe-runs")
    if given is None and not path.is_dir():
        path = Path()
    if not path.is_dir():
        raise UsageError.of(
            "errors/server.is-file" if path.exists() else "errors/server.no-folder", where=str(path)
        )
    if not os.access(path, os.R_OK | os.X_OK):
        raise UsageError.of("errors/server.unreadable-folder", where=str(path))
    return path.resolve()


def running_at(port: int) -> Instance | None:
    """Our server on that port. The note of one that is gone is cleared away."""
    found = instances.at_port(port)
    if found is not None and not found.is_alive:
        instances.remove(found)
        return None
    return found


def start(base_dir: Path, host: str, port: int, allowed_hosts: tuple[str, ...] = ()) -> Instance:
    """A server in the background, ready to answer. Raises StrobeError."""
    settings = Settings(base_dir, host, port, token_to_use(), allowed_hosts)
    with listen(host, port) as listener:
        ready_end, child_end = os.pipe()
        try:
            process = _spawn(settings, listener, child_end)
        finally:
            os.close(child_end)
        try:
            _wait_until_ready(process, ready_end, port)
        finally:
            os.close(ready_end)
    found = instances.at_port(port)
    if found is None:  # it wrote its note before it said that it is ready
        raise StrobeError.of("errors/server.ended", where=str(instances.log_file(port)), line="")
    return found


def free_port(host: str) -> int:
    for port in range(DEFAULT_PORT, DEFAULT_PORT + _PORTS_TRIED):
        with contextlib.suppress(UsageError):
            listen(host, port).close()
            return port
    raise UsageError.of(
        "errors/server.no-free-port", first=DEFAULT_PORT, last=DEFAULT_PORT + _PORTS_TRIED - 1
    )


def run_here(settings: Settings, listener: socket.socket, ready_end: int | None = None) -> None:
    """Be the server, and leave no note behind at the end."""
    me = instances.this_process(
        settings.host, settings.port, settings.base_dir, settings.token
    )  # fmt: skip

    def is_ready() -> None:
        instances.write(me)
        if ready_end is not None:
            os.write(ready_end, b"ready")
            os.close(ready_end)

    try:
        serve(settings, listener, is_ready)
    finally:
        instances.remove(me)


def child() -> None:
    """What the new process does; the settings come by stdin, since others can see arguments."""
    given = json.load(sys.stdin)
    listener = socket.socket(fileno=given["listener"])
    settings = Settings(
        Path(given["base_dir"]), given["host"], given["port"], given["token"],
        tuple(given["allowed_hosts"]),
    )  # fmt: skip
    with contextlib.suppress(KeyboardInterrupt):
        run_here(settings, listener, given["ready_end"])


def _spawn(
    settings: Settings, listener: socket.socket, ready_end: int
) -> "subprocess.Popen[bytes]":
    package = str(Path(strobe.__file__).parents[1])
    paths = [package, os.environ.get("PYTHONPATH", "")]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))}
    with open(instances.log_file(settings.port), "wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-c", _START], stdin=subprocess.PIPE, stdout=log, stderr=log,
            pass_fds=(listener.fileno(), ready_end), env=environment, start_new_session=True,
            cwd="/",
        )  # fmt: skip
    given = {
        "base_dir": str(settings.base_dir), "host": settings.host, "port": settings.port,
        "token": settings.token, "allowed_hosts": settings.allowed_hosts,
        "listener": listener.fileno(), "ready_end": ready_end,
    }  # fmt: skip
    assert process.stdin is not None
    with contextlib.suppress(BrokenPipeError), process.stdin as pipe:
        pipe.write(json.dumps(given).encode())
    return process


def _wait_until_ready(process: "subprocess.Popen[bytes]", ready_end: int, port: int) -> None:
    readable, _, _ = select.select([ready_end], [], [], _READY_S)
    if readable and os.read(ready_end, 16) == b"ready":
        process.returncode = 0  # it goes on without us
        return
    log = instances.log_file(port)
    if not readable:
        process.kill()
        id = "errors/server.not-ready"
    else:
        id = "errors/server.ended"
    last = (log.read_text(encoding="utf-8", errors="replace").strip().splitlines() or [""])[-1]
    raise StrobeError.of(id, where=str(log), seconds=f"{_READY_S:.0f}", line=last)
