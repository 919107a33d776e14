"""The server process: it listens on its port, and serves until it is stopped."""

import asyncio
import contextlib
import os
import resource
import secrets
import socket
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from strobe.errors import UsageError
from strobe.web.guard import LOOPBACK, Guard

TOKEN_VARIABLE = "STROBE_TOKEN"
# Shorter tokens could be guessed.
LEAST_TOKEN_LETTERS = 16
# Enough for two thousand connections, their workers' pipes and the files.
OPEN_FILES = 8192
# Connections waiting to be accepted while the server does something else.
BACKLOG = 2048
# For an idle connection; a browser opens a new one.
KEEP_ALIVE_S = 15
# How long the end waits for answers that are on their way.
LAST_WORDS_S = 3


@dataclass(frozen=True)
class Settings:
    base_dir: Path
    host: str
    port: int
    token: str
    allowed_hosts: tuple[str, ...] = ()


def token_to_use() -> str:
    """From the environment if it is set there, else a new one. Raises UsageError."""
    given = os.environ.get(TOKEN_VARIABLE, "")
    if not given:
        return secrets.token_urlsafe(32)
    is_plain = given.isascii() and given.isprintable() and not set(given) & set(" \"';,&#?%+=/\\")
    if len(given) < LEAST_TOKEN_LETTERS or not is_plain:
        raise UsageError.of(
            "errors/server.bad-token", variable=TOKEN_VARIABLE, least=LEAST_TOKEN_LETTERS
        )
    return given


def listen(host: str, port: int) -> socket.socket:
    """Raises UsageError with the reason where it is not possible."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
    except OSError as error:
        raise UsageError.of("errors/server.bad-host", host=repr(host), reason=error) from error
    listener = socket.socket(family, kind, protocol)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(BACKLOG)
    except OSError as error:
        listener.close()
        raise UsageError.of(
            "errors/server.port-taken" if port >= 1024 else "errors/server.port-not-allowed",
            where=f"{host}:{port}",
            port=port,
            next=port + 1,
            reason=os.strerror(error.errno or 0),
        ) from error
    return listener


def hosts_of(settings: Settings) -> frozenset[str]:
    """The names that a browser may use for this server."""
    named = {host.lower() for host in settings.allowed_hosts}
    if settings.host not in ("127.0.0.1", "::1", "localhost"):
        # Other machines use the name of this one, or its address.
        named |= {socket.gethostname().lower(), socket.getfqdn().lower()}
        named |= set() if settings.host in ("0.0.0.0", "::", "") else {settings.host.lower()}
        with contextlib.suppress(OSError):
            for found in socket.getaddrinfo(socket.gethostname(), None):
                named.add(str(found[4][0]).lower())
    return LOOPBACK | {f"[{name}]" if ":" in name else name for name in named}


def serve(settings: Settings, listener: socket.socket, is_ready: Callable[[], None]) -> None:
    """Until SIGTERM or SIGINT. `is_ready` is called once requests are answered."""
    import uvicorn

    from strobe.store.user_cache import user_cache
    from strobe.web.app import application
    from strobe.web.timeouts import HeadTimeoutProtocol

    allow_many_files()
    app = Guard(
        application(settings.base_dir, user_cache() / "web"),
        token=settings.token,
        hosts=hosts_of(settings),
        port=settings.port,
    )
    config = uvicorn.Config(
        app,
        http=HeadTimeoutProtocol,
        ws="none",
        lifespan="on",
        log_level="warning",
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_keep_alive=KEEP_ALIVE_S,
        timeout_graceful_shutdown=LAST_WORDS_S,
        backlog=BACKLOG,
    )
    asyncio.run(_serve(uvicorn.Server(config), listener, is_ready))


async def _serve(server: "object", listener: socket.socket, is_ready: Callable[[], None]) -> None:
    import uvicorn

    assert isinstance(server, uvicorn.Server)
    serving = asyncio.create_task(server.serve(sockets=[listener]))
    while not server.started and not serving.done():
        await asyncio.sleep(0.01)
    if server.started:
        is_ready()
    await serving


def allow_many_files() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = OPEN_FILES if hard == resource.RLIM_INFINITY else min(OPEN_FILES, hard)
    if soft < wanted:
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
