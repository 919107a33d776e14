"""Content-addressed files: written once, whole or not at all, and named after what is in them."""

import hashlib
import os
import threading
from pathlib import Path

_NAME_DIGITS = 32


def blob_name(data: bytes, suffix: str) -> str:
    return f"{hashlib.sha256(data).hexdigest()[:_NAME_DIGITS]}.{suffix}"


def write_blob(folder: Path, data: bytes, suffix: str) -> str:
    """Write a file into a folder, unless it is there; return its name. Raises OSError."""
    name = blob_name(data, suffix)
    path = folder / name
    if path.exists():
        return name
    folder.mkdir(exist_ok=True)
    unfinished = folder / f".{name}.{os.getpid()}-{threading.get_ident()}"
    try:
        unfinished.write_bytes(data)
        os.replace(unfinished, path)
    except OSError:
        unfinished.unlink(missing_ok=True)
        raise
    return name
