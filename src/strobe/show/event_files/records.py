"""Records of an event file: length, its checksum, the message, its checksum."""

from pathlib import Path
from typing import Any

import numpy as np

from strobe.ingest.formats.event_files.checksums import masked
from strobe.ingest.formats.xplane.wire import Block
from strobe.show.event_files.columns import Column, concatenated, constant, fixed, joined

Array = np.ndarray[Any, np.dtype[Any]]

_BUFFER_BYTES = 4 << 20
_HEADER, _CHECKSUM = 12, 4
_ROOM = bytes(_CHECKSUM)


class EventFile:
    """A new event file; a record is on disk when the file is closed."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("xb")
        self._messages: list[bytes] = []
        self._bytes = 0

    def __enter__(self) -> "EventFile":
        return self

    def __exit__(self, *error: object) -> None:
        try:
            if error[0] is None:
                self._flush()
        finally:
            self._file.close()

    def add(self, message: bytes) -> None:
        self._messages.append(message)
        self._bytes += len(message)
        if self._bytes >= _BUFFER_BYTES:
            self._flush()

    def add_columns(self, message: Column, count: int) -> None:
        """A record for each of many rows."""
        self._flush()
        size = np.broadcast_to(np.asarray(message.size, dtype=np.int64), (count,))
        room = constant(_ROOM)
        out, begins = joined(
            concatenated(fixed(size.astype("<u8")), room, message, room), count
        )  # fmt: skip
        self._file.write(_with_checksums(out, begins, size).data)

    def _flush(self) -> None:
        if not self._messages:
            return
        size = np.array([len(message) for message in self._messages], dtype=np.int64)
        parts = [
            part
            for message in self._messages
            for part in (len(message).to_bytes(8, "little"), _ROOM, message, _ROOM)
        ]
        out = np.frombuffer(bytearray().join(parts), dtype=np.uint8)
        after = np.cumsum(size + _HEADER + _CHECKSUM)
        self._messages, self._bytes = [], 0
        self._file.write(_with_checksums(out, after - size - _HEADER - _CHECKSUM, size).data)


def _with_checksums(out: Array, begins: Array, size: Array) -> Array:
    """Fills the room that is left for them."""
    block = Block(out.tobytes())
    starts = begins + _HEADER
    for at, start, end in (
        (begins + 8, begins, begins + 8), (starts + size, starts, starts + size),
    ):  # fmt: skip
        checksum = masked(block, start, end).astype("<u4").view(np.uint8).reshape(-1, _CHECKSUM)
        out[at[:, None] + np.arange(_CHECKSUM)] = checksum
    return out
