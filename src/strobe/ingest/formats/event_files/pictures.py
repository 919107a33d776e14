"""What a picture file says of itself: its format and size."""

import struct
from typing import NamedTuple

_MAGIC = {b"\x89PNG\r\n": "png", b"\xff\xd8\xff": "jpeg", b"GIF8": "gif", b"BM": "bmp"}
_CHANNELS_OF_PNG = {0: 1, 2: 3, 3: 3, 4: 2, 6: 4}


class Picture(NamedTuple):
    format: str
    width: int | None = None
    height: int | None = None
    channels: int | None = None


def picture(data: bytes) -> Picture:
    """Format and size, as far as the first bytes tell; format bin if it is none of the known."""
    name = next((name for magic, name in _MAGIC.items() if data.startswith(magic)), "bin")
    if name == "png" and len(data) >= 26:
        width, height, _, colour = struct.unpack_from(">IIBB", data, 16)
        return Picture(name, width, height, _CHANNELS_OF_PNG.get(colour))
    if name == "gif" and len(data) >= 10:
        width, height = struct.unpack_from("<HH", data, 6)
        return Picture(name, width, height, 3)
    if data.startswith(b"RIFF") and data[8:12] == b"WEBP":
        return Picture("webp")
    return Picture(name)
