"""Messages between the server and its workers: two lengths, a head in JSON, then a body of bytes.

Plain JSON, because a worker reads files of strangers: nothing that it sends is ever unpickled.
"""

import asyncio
import json
import struct
from typing import Any, BinaryIO

_LENGTHS = struct.Struct("<II")  # of the head and of the body

Message = tuple[dict[str, Any], bytes]


def pack(head: dict[str, Any], body: bytes = b"") -> bytes:
    text = json.dumps(head).encode()
    return _LENGTHS.pack(len(text), len(body)) + text + body


def read(stream: BinaryIO) -> Message | None:
    """The next message, or None at the end. For the worker."""
    lengths = stream.read(_LENGTHS.size)
    if len(lengths) < _LENGTHS.size:
        return None
    of_head, of_body = _LENGTHS.unpack(lengths)
    head, body = stream.read(of_head), stream.read(of_body)
    if len(head) < of_head or len(body) < of_body:
        return None
    return json.loads(head), body


async def receive(stream: asyncio.StreamReader) -> Message:
    """The next message. For the server. Raises IncompleteReadError at the end."""
    of_head, of_body = _LENGTHS.unpack(await stream.readexactly(_LENGTHS.size))
    head = json.loads(await stream.readexactly(of_head))
    return head, await stream.readexactly(of_body)
