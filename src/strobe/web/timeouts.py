"""How long a client may take: one that sends its request byte by byte is not waited for.

uvicorn waits for the head of a request for ever. Here a connection is closed when a head is not
complete a few seconds after its connection was made or its first byte came, or grows too long.
"""

import asyncio
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

# A head comes in one piece within a second even over a bad line; closed well within ten.
HEAD_S = 6.0
# Cookies of other services on this machine come along too, so there must be some room.
MOST_HEAD_BYTES = 64 << 10


class ImpatientProtocol(H11Protocol):
    """uvicorn's own protocol, with a clock on the head of each request.

    That of h11, whatever else is installed: its parser is strict, and far from being the slow part.
    """

    _deadline: asyncio.TimerHandle | None = None
    _head_bytes = 0

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._start_clock()

    def data_received(self, data: bytes) -> None:
        before = self.cycle
        super().data_received(data)
        if self.cycle is not before or self._is_answering():
            self._stop_clock()  # a head came to its end, or more of a body that is expected
            return
        self._head_bytes += len(data)
        if self._head_bytes > MOST_HEAD_BYTES:
            self._close()
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
        self._head_bytes = 0
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _close(self) -> None:
        self._stop_clock()
        if not self.transport.is_closing():
            self.transport.abort()
