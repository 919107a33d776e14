"""The pages themselves: the built bundle, read into memory, packed once."""

import gzip
import hashlib
import mimetypes
import os
import time
from dataclasses import dataclass
from pathlib import Path

STATIC = Path(__file__).with_name("static")
# While somebody works on the pages a new build is seen after so long.
_LOOK_EVERY_S = 1.0
_PACKED = ("text/", "application/json", "text/javascript", "image/svg+xml", "application/wasm")
_TYPES = {
    ".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8", ".svg": "image/svg+xml", ".woff2": "font/woff2",
    ".txt": "text/plain; charset=utf-8", ".json": "application/json", ".wasm": "application/wasm",
}  # fmt: skip


@dataclass(frozen=True)
class Asset:
    body: bytes
    packed: bytes | None
    media_type: str
    tag: str
    is_fixed: bool  # its name changes with its content


class Assets:
    """By address. What is not in the folder has no address, so that none can lead out of it."""

    def __init__(self, folder: Path = STATIC) -> None:
        self._folder = folder
        self._found: dict[str, Asset] = {}
        self._stamp: tuple[tuple[str, int, int], ...] = ()
        self._looked = float("-inf")

    def get(self, address: str) -> Asset | None:
        if time.monotonic() - self._looked > _LOOK_EVERY_S:
            self._look()
        return self._found.get("index.html" if address == "" else address)

    def _look(self) -> None:
        self._looked = time.monotonic()
        try:
            files = sorted(path for path in self._folder.rglob("*") if path.is_file())
            stamp = tuple((str(p), (s := p.stat()).st_size, s.st_mtime_ns) for p in files)
            if stamp == self._stamp:
                return
            found = {path.relative_to(self._folder).as_posix(): _read(path) for path in files}
        except OSError:  # a build is just replacing them: soon again
            return
        self._stamp, self._found = stamp, found


def _read(path: Path) -> Asset:
    body = path.read_bytes()
    kind = _TYPES.get(path.suffix) or mimetypes.guess_type(path.name)[0]
    kind = kind or "application/octet-stream"
    packed = gzip.compress(body, 6, mtime=0) if kind.startswith(_PACKED) else None
    if packed is not None and len(packed) >= len(body):
        packed = None
    tag = hashlib.sha256(body).hexdigest()[:24]
    return Asset(body, packed, kind, f'"{tag}"', f"{os.sep}assets{os.sep}" in str(path))
