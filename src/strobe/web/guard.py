"""The check on every request: who may ask, from where, and how much.

Loopback is not a boundary: a page of any site can make a browser ask 127.0.0.1, and with DNS
rebinding even read the answer. So the Host must be one of ours, the Origin must be the same, and a
token is required, which the first link carries and then a cookie.

Starlette's TrustedHostMiddleware would be weaker: it takes the first of several Host headers, where
this refuses them, and its refusal does not say which address to use.
"""

import asyncio
import hashlib
import hmac
import html
import json
import re
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any
from urllib.parse import parse_qsl, urlencode

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

# Our addresses are short; a longer one is an attack or a mistake.
MOST_TARGET_BYTES = 16 << 10
# The largest body is a list of tags.
MOST_BODY_BYTES = 64 << 10
# A body is small: a client that takes longer than this to send it does so on purpose.
BODY_S = 10.0
# A client that takes nothing of an answer for this long has gone.
SEND_S = 30.0

LOOPBACK = frozenset({"localhost", "127.0.0.1", "[::1]"})
_HOST = re.compile(r"(\[[0-9a-f:.]+\]|[a-z0-9._-]+)(?::\d{1,5})?", re.ASCII)
_SAFE = ("GET", "HEAD")

# No script, style, picture or connection from anywhere else, and no inline ones.
POLICY = "; ".join(
    (
        "default-src 'none'", "script-src 'self'", "style-src 'self'", "img-src 'self' data: blob:",
        "font-src 'self'", "connect-src 'self'", "worker-src 'self'", "manifest-src 'self'",
        "base-uri 'none'", "form-action 'none'", "frame-ancestors 'none'",
    )
)  # fmt: skip
HEADERS: tuple[tuple[bytes, bytes], ...] = (
    (b"content-security-policy", POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"same-origin"),
    # Popups: a timeline can be opened in Perfetto, in its own window.
    (b"cross-origin-opener-policy", b"same-origin-allow-popups"),
    (b"permissions-policy", b"camera=(), microphone=(), geolocation=(), usb=()"),
)

_NO_TOKEN = (
    "this link lacks its token",
    "open the link that strobe start printed; strobe status prints it again. "
    "If you have opened it before in this browser, reload this page",
)


class Guard:
    """An ASGI application around another."""

    def __init__(self, app: App, *, token: str, hosts: frozenset[str], port: int) -> None:
        self._app = app
        self._token = token
        self._hosts = hosts
        # Cookies do not know ports: two servers on one machine must not share theirs.
        self.cookie = f"strobe-{port}"
        # Not the token itself: with the cookie alone, nobody can make a link.
        self._cookie_value = hashlib.sha256(f"cookie {token}".encode()).hexdigest()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":  # no websockets
            return
        request = _Request(scope)
        send = _with_headers(_with_timeout(send))
        refusal = self._refusal(request)
        if refusal is not None:
            await _refuse(request, send, *refusal)
        elif request.token and hmac.compare_digest(request.token.encode(), self._token.encode()):
            await self._welcome(request, send)
        elif not self._is_known(request):
            await _refuse(request, send, 401, *_NO_TOKEN)
        else:
            await self._app(scope, _bounded(receive), send)

    def _refusal(self, request: "_Request") -> tuple[int, str, str] | None:
        """What is refused to everybody."""
        if request.target_bytes > MOST_TARGET_BYTES:
            return 414, "this address is too long", f"at most {MOST_TARGET_BYTES:,} bytes"
        if request.has_nul:
            return 400, "no name and no value holds a NUL", "leave it out"
        if not self._is_our_host(request):
            return (
                421, "this server is not called that",
                "use the address that strobe start printed; strobe start --allow-host NAME "
                "lets it answer to another name",
            )  # fmt: skip
        if not request.is_same_origin:
            return 403, "another site asked for this", "open the pages themselves"
        return None if request.method in _SAFE else self._refusal_to_change(request)

    def _refusal_to_change(self, request: "_Request") -> tuple[int, str, str] | None:
        if request.method != "POST":
            return 405, f"no {request.method[:20]} here", "GET, or POST to change something"
        if request.header(b"x-strobe") != "1" or not request.says_same_origin:
            return 403, "another site may have asked for this", "it needs Origin and X-Strobe: 1"
        if request.body_bytes > MOST_BODY_BYTES:
            return 413, "this is too much", f"at most {MOST_BODY_BYTES:,} bytes"
        return None

    def _is_our_host(self, request: "_Request") -> bool:
        """Exactly one Host, and one of ours; on any port, because a tunnel may end on another."""
        return request.host_name is not None and request.host_name in self._hosts

    def _is_known(self, request: "_Request") -> bool:
        cookie = request.cookie(self.cookie).encode()
        if hmac.compare_digest(cookie, self._cookie_value.encode()):
            return True
        scheme, _, bearer = request.header(b"authorization").partition(" ")
        given = bearer.strip().encode() if scheme.lower() == "bearer" else b""
        return bool(given) and hmac.compare_digest(given, self._token.encode())

    async def _welcome(self, request: "_Request", send: Send) -> None:
        """Remove the token from the address: it must not end up in bookmarks and screenshots."""
        cookie = f"{self.cookie}={self._cookie_value}; Path=/; HttpOnly; SameSite=Strict"
        rest = urlencode([(name, value) for name, value in request.query if name != "token"])
        headers = [
            (b"location", f"./{'?' + rest if rest else ''}".encode()),
            (b"set-cookie", cookie.encode()),
            (b"cache-control", b"no-store"),
            (b"content-length", b"0"),
        ]
        await send({"type": "http.response.start", "status": 303, "headers": headers})
        await send({"type": "http.response.body", "body": b""})


class _Request:
    """What the guard needs to know about a request."""

    def __init__(self, scope: Scope) -> None:
        self._headers: list[tuple[bytes, bytes]] = scope["headers"]
        self.method: str = scope["method"]
        self.path: str = scope["path"]
        self.target_bytes = len(scope.get("raw_path") or b"") + len(scope["query_string"])
        self._query = scope["query_string"].decode("latin-1")
        self.has_nul = "\0" in self.path or "\0" in self._query or "%00" in self._query
        self.scheme: str = scope["scheme"]

    def header(self, name: bytes) -> str:
        """The only header of that name; several count as none."""
        found = [value for key, value in self._headers if key == name]
        return found[0].decode("latin-1") if len(found) == 1 else ""

    @property
    def host_name(self) -> str | None:
        match = _HOST.fullmatch(self.header(b"host").lower())
        return match.group(1) if match else None

    @property
    def query(self) -> list[tuple[str, str]]:
        return parse_qsl(self._query, keep_blank_values=True)

    @property
    def token(self) -> str:
        if self.path != "/" or self.method not in _SAFE or "token=" not in self._query:
            return ""
        return next((value for name, value in self.query if name == "token"), "")

    @property
    def body_bytes(self) -> int:
        text = self.header(b"content-length")
        return int(text) if text.isascii() and text.isdecimal() and len(text) < 16 else 0

    @property
    def is_same_origin(self) -> bool:
        """Whether the browser does not say that another site asks. Opening a page is allowed."""
        site = self.header(b"sec-fetch-site")
        is_navigation = self.path == "/" and self.header(b"sec-fetch-mode") == "navigate"
        if site in ("cross-site", "same-site") and not is_navigation:
            return False
        origins = [value for key, value in self._headers if key == b"origin"]
        return not origins or self.says_same_origin

    @property
    def says_same_origin(self) -> bool:
        return self.header(b"origin").lower() == f"{self.scheme}://{self.header(b'host').lower()}"

    def cookie(self, name: str) -> str:
        for key, value in self._headers:
            if key == b"cookie":
                for part in value.decode("latin-1").split(";"):
                    known, _, text = part.strip().partition("=")
                    if known == name:
                        return text
        return ""

    @property
    def wants_page(self) -> bool:
        return not self.path.startswith("/api/")


def _with_headers(send: Send) -> Send:
    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            given = list(message.get("headers", []))
            names = {name for name, _ in given}
            message["headers"] = given + [h for h in HEADERS if h[0] not in names]
        await send(message)

    return sending


def _with_timeout(send: Send) -> Send:
    async def sending(message: Message) -> None:
        await asyncio.wait_for(send(message), SEND_S)

    return sending


def _bounded(receive: Receive) -> Receive:
    """No more of a body than allowed, whatever its head says."""
    received = 0

    async def receiving() -> Message:
        nonlocal received
        message = await receive()
        received += len(message.get("body", b""))
        if received > MOST_BODY_BYTES:
            return {"type": "http.disconnect"}
        return message

    return receiving


async def _refuse(request: _Request, send: Send, status: int, what: str, hint: str) -> None:
    if request.wants_page and request.method in _SAFE:
        kind = b"text/html; charset=utf-8"
        page = (
            "<!doctype html><html lang=en><meta charset=utf-8><title>Strobe</title>"
            f"<h1>Strobe</h1><p>{html.escape(what.capitalize())}.</p>"
            f"<p>{html.escape(hint[:1].upper() + hint[1:])}.</p></html>"
        )
        body = page.encode()
    else:
        kind = b"application/json"
        body = json.dumps({"ok": False, "error": what, "hint": hint}).encode()
    headers = [
        (b"content-type", kind),
        (b"content-length", str(len(body)).encode()),
        (b"cache-control", b"no-store"),
        (b"connection", b"close"),
    ]
    if request.method == "HEAD":
        body = b""
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
