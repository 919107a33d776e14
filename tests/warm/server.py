"""Imports packages, then runs the script of each client in a fork: `server.py SOCKET PACKAGES`.

Strobe is not imported here: it begins in the fork as it does when Python starts, through the
sitecustomize on PYTHONPATH. The server ends with its standard input.
"""

import contextlib
import importlib
import json
import os
import select
import signal
import socket
import sys
import types
from typing import Any


def main(address: str) -> dict[str, Any]:
    """Returns in forks only, with what the client asks for."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as server:
        server.bind(address)
        server.listen()
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        while True:
            ready, _, _ = select.select([server, 0], [], [])
            if 0 in ready:
                os._exit(0)
            client, _ = server.accept()
            if not os.fork():
                server.close()
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                return _serve(client)
            client.close()


def _serve(client: socket.socket) -> dict[str, Any]:
    with client:
        size, streams, _, _ = socket.recv_fds(client, 8, 3)
        request = json.loads(_read(client, int.from_bytes(size, "big")))
        pid = os.fork()
        if pid:
            _answer(client, pid, streams)
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    return request


def _read(client: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        data += client.recv(size - len(data))
    return data


def _answer(client: socket.socket, pid: int, streams: list[int]) -> None:
    """Wait for the script; if its client is killed, so is the script."""
    for stream in (0, 1, 2, *streams):
        os.close(stream)
    with open(os.pidfd_open(pid), closefd=True) as ended:
        ready, _, _ = select.select([ended, client], [], [])
        if ended not in ready:
            os.kill(pid, signal.SIGKILL)
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    client.send(str(status).encode())
    os._exit(0)


def begin(request: dict[str, Any]) -> str:
    """What Python does before a script; returns the script."""
    os.chdir(request["folder"])
    os.environ.clear()
    os.environ.update(request["environment"])
    sys.argv[:] = request["words"]
    paths = [path for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path]
    sys.path[:1] = paths
    sys.modules.pop("sitecustomize", None)
    with contextlib.suppress(ImportError):
        importlib.import_module("sitecustomize")
    script = sys.argv[0]
    sys.path.insert(0, os.path.dirname(os.path.realpath(script)))
    return script


for _package in sys.argv[2:]:
    importlib.import_module(_package)
_request = main(sys.argv[1])
_script = begin(_request)
_main = types.ModuleType("__main__")
_main.__file__ = _script
sys.modules["__main__"] = _main
with open(_script, encoding="utf-8") as _file:
    _code = compile(_file.read(), _script, "exec")
exec(_code, vars(_main))
