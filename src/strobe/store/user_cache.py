"""Where things go that can be made again: a directory of this user's alone."""

import os
import tempfile
from pathlib import Path


def user_cache() -> Path:
    """A directory of this user's alone."""
    base = Path(tempfile.gettempdir()) / f"strobe-cache-{os.getuid()}"
    base.mkdir(mode=0o700, exist_ok=True)
    status = base.lstat()
    if status.st_uid != os.getuid() or status.st_mode & 0o077 or base.is_symlink():
        base = Path(tempfile.mkdtemp(prefix="strobe-cache-"))
    return base
