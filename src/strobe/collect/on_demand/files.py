"""Small JSON files shared by processes: written atomically, written once, and read defensively."""

import contextlib
import errno
import json
import os
import stat
import threading
from pathlib import Path
from typing import Any

from strobe.messages import message

# More than any of these files needs; a larger one is a mistake, or an attack on our memory.
LARGEST_BYTES = 1 << 16

_WHY_NOT = {
    errno.ENOENT: "missing-file",
    errno.ELOOP: "is-link",
    errno.ENXIO: "not-plain",
}
# A file system without hard links.
_NO_LINKS = {errno.EPERM, errno.EOPNOTSUPP, errno.ENOTSUP, errno.EMLINK, errno.ENOSYS}


class Unreadable(Exception):
    """Its argument is the reason, a message: the end of a sentence that begins with the file."""


class _Invalid(ValueError):
    """JSON that Python reads, and we do not accept."""


def read_text(path: Path) -> str:
    """The text of a plain file. Raises Unreadable.

    Never blocks (on a pipe), follows no link, and reads no more than necessary.
    """
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        raise _because_of(error) from None
    try:
        status = os.fstat(handle)
        if not stat.S_ISREG(status.st_mode):
            is_folder = stat.S_ISDIR(status.st_mode)
            raise _unreadable("is-folder" if is_folder else "not-plain")
        data = os.read(handle, LARGEST_BYTES + 1)
    except OSError as error:
        raise _because_of(error) from None
    finally:
        os.close(handle)
    if len(data) > LARGEST_BYTES:
        raise _unreadable("too-large", most=f"{LARGEST_BYTES // 1024} kB")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise _unreadable("not-utf8", byte=error.start) from None


def parse(text: str) -> dict[str, Any]:
    """The object of a JSON text. Raises Unreadable, with line and column."""
    if not text.strip():
        raise _unreadable("empty")
    try:
        found = json.loads(text, object_pairs_hook=_pairs, parse_constant=_no_constant)
    except json.JSONDecodeError as error:
        raise _unreadable(
            "not-json", reason=error.msg, line=error.lineno, column=error.colno
        ) from None
    except (ValueError, RecursionError) as error:
        reason = error.args[0] if isinstance(error, _Invalid) else str(error)[:80]
        raise _unreadable("bad-json", reason=reason) from None
    if not isinstance(found, dict):
        raise _unreadable("not-object")
    return found


def read_object(path: Path) -> dict[str, Any] | None:
    """The object in a file of our own; None if it is missing or incomplete."""
    try:
        return parse(read_text(path))
    except Unreadable:
        return None


def replace(path: Path, content: dict[str, Any], is_for_people: bool = True) -> None:
    """Atomic: all or nothing. Raises OSError."""
    temporary = _written_beside(path, content, is_for_people)
    try:
        os.replace(temporary, path)
    except OSError:
        _drop(temporary)
        raise


def write_once(path: Path, content: dict[str, Any]) -> bool:
    """Atomic, and only if the file does not exist: of several writers, one succeeds.

    That holds on one machine and on a shared file system: only one process can create a hard link.
    """
    temporary = _written_beside(path, content)
    try:
        os.link(temporary, path)
        return True
    except FileExistsError:
        return False
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        return _created(path, content)
    finally:
        _drop(temporary)


def _created(path: Path, content: dict[str, Any]) -> bool:
    """A reader may find the file incomplete, treats it as missing, and tries again."""
    try:
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
    except FileExistsError:
        return False
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        json.dump(content, file)
    return True


def _written_beside(path: Path, content: dict[str, Any], is_for_people: bool = True) -> Path:
    name = f".{path.name}.{os.uname().nodename}.{os.getpid()}.{threading.get_ident()}"
    temporary = path.with_name(name)
    # Without indentation, json is encoded in C.
    text = json.dumps(content, ensure_ascii=False, indent=1 if is_for_people else None) + "\n"
    try:
        with open(temporary, "wb") as file:
            file.write(text.encode("utf-8", "backslashreplace"))
    except OSError:
        _drop(temporary)
        raise
    return temporary


def _drop(path: Path) -> None:
    with contextlib.suppress(OSError):
        path.unlink()


def _unreadable(id: str, **values: Any) -> Unreadable:
    return Unreadable(message(f"errors/dynamic.{id}", **values))


def _because_of(error: OSError) -> Unreadable:
    id = _WHY_NOT.get(error.errno or 0, "cannot-read")
    return _unreadable(id, reason=error.strerror or error)


def _pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise _Invalid(message("errors/dynamic.twice", name=repr(twice)))
    return found


def _no_constant(name: str) -> Any:
    raise _Invalid(message("errors/dynamic.bad-number", name=name))
