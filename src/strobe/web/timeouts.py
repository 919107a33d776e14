"""A clock on the head of each request: a client that sends it byte by byte is disconnected.

uvicorn has no such limit and waits for a head for ever. With `--host 0.0.0.0`, a few thousand slow
clients of anybody on the network would then take every connection, before any token is asked for;
uvicorn has no public hook for it, so this extends its h11 protocol (its parser limits the bytes).
tests/web/test_timeouts.py notices if a new uvicorn breaks it.
"""

import asyncio
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

# A head arrives in one piece within a second even over a bad line; and 10 s are the limit.
HEAD_S = 6.0


class HeadTimeoutProtocol(H11Protocol):
    """Closes a connection whose next head is not complete in time: from the connection's start,
    or from the head's first byte."""

    _deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._start_clock()

    def data_received(self, data: bytes) -> None:
        before = self.cycle
        super().data_received(data)
        if self.cycle is not before or self._is_answering():
            self._stop_clock()  # a head is complete, or these are more bytes of a body
        elif self._deadline is None:
            self._start_clock()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_clock()
        super().connection_lost(exc)

    def _is_answering(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    def _start_clock(self) -> None:
        self._deadline = self.loop.call_later(HEAD_S, self._close)

    def _stop_clock(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _close(self) -> None:
        self._stop_clock()
        if not self.transport.is_closing():
            self.transport.abort()
