"""Messages between the server and its workers: a length, a head in JSON, then a body of bytes.

Plain JSON on purpose: a worker reads files that strangers wrote, and nothing it says is ever
unpickled.
"""

import json
import struct
from typing import Any, BinaryIO

LENGTHS = struct.Struct("<II")  # of the head and of the body


def pack(head: dict[str, Any], body: bytes = b"") -> bytes:
    text = json.dumps(head).encode()
    return LENGTHS.pack(len(text), len(body)) + text + body


def read(stream: BinaryIO) -> tuple[dict[str, Any], bytes] | None:
    """The next message, or None at the end. For the worker; the server reads with asyncio."""
    lengths = stream.read(LENGTHS.size)
    if len(lengths) < LENGTHS.size:
        return None
    of_head, of_body = LENGTHS.unpack(lengths)
    head, body = stream.read(of_head), stream.read(of_body)
    if len(head) < of_head or len(body) < of_body:
        return None
    return json.loads(head), body
