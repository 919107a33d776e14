"""Find the lines of the user's own code from which torch was called: where, not how often.

Looking up from a call costs some microseconds, so only the first calls of a kind are looked at.
"""

import functools
import os
import sys
import time
from collections.abc import Callable
from types import FrameType
from typing import Any, NamedTuple

from strobe.collect.notebooks import cell_of
from strobe.collect.until_deleted import UntilDeleted

_STANDARD_LIBRARY = os.path.dirname(os.__file__)
_STROBE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
# The training that Strobe itself brings along is as good as a user's.
_DEMO = os.path.join(_STROBE, "demo")
# The last is where torch.compile puts the code it writes, unless told otherwise.
_INSTALLED = (
    *(f"{os.sep}{name}{os.sep}" for name in ("site-packages", "dist-packages")),
    f"{os.sep}torchinductor_",
    *([os.environ["TORCHINDUCTOR_CACHE_DIR"]] if "TORCHINDUCTOR_CACHE_DIR" in os.environ else []),
)

# Code without a file is a library's own (generated) unless somebody typed it.
_TYPED = ("<stdin>", "<ipython-input")

# A line is told once. A loop that makes new lines without end (exec) must not fill the journal.
MOST_PLACES = 256


class Line(NamedTuple):
    file: str
    line: int
    function: str


def users_line(frame: FrameType | None) -> Line | None:
    """The innermost line of the user's own code, from this frame outwards.

    Where all code is installed (python -m package.train), the main module's line stands for it.
    """
    main = None
    while frame is not None:
        if is_users(frame.f_code.co_filename):
            return line_of(frame)
        if main is None and frame.f_globals.get("__name__") == "__main__":
            main = line_of(frame)
        frame = frame.f_back
    return main


def line_of(frame: FrameType) -> Line:
    code = frame.f_code
    return Line(full_path(code.co_filename), frame.f_lineno or _line_before(frame), code.co_name)


def _line_before(frame: FrameType) -> int:
    """Of an instruction without a line: a loop's jump back to its beginning has none where several
    ways lead there, and that is where a thread that computes in Python is seen most."""
    found = frame.f_code.co_firstlineno
    for start, _, line in frame.f_code.co_lines():
        if line and start <= frame.f_lasti:
            found = line
    return found


def full_path(file: str) -> str:
    """Of a code object's file; a notebook's cell by the number that its user knows."""
    return cell_of(file) or _absolute(file)


@functools.cache
def _absolute(file: str) -> str:
    """As seen from the folder in which it was first asked for."""
    try:
        return file if file.startswith("<") else os.path.abspath(file)
    except OSError:  # that folder is gone
        return file


@functools.cache
def is_users(file: str) -> bool:
    """Whether a file is neither installed, nor the standard library, torch or Strobe."""
    if file.startswith("<"):
        return file.startswith(_TYPED)
    path = _absolute(file)
    if any(name in path for name in _INSTALLED):
        return False
    if _is_below(path, _STROBE):
        return _is_below(path, _DEMO)
    return not _is_below(path, _STANDARD_LIBRARY) and not _is_below(path, _torch_folder())


def _is_below(path: str, folder: str) -> bool:
    return bool(folder) and path.startswith(folder + os.sep)


def _torch_folder() -> str:
    """It need not be installed: those who work on torch run it from their own tree."""
    home = getattr(sys.modules.get("torch"), "__file__", None)
    return os.path.dirname(os.path.abspath(home)) if home else ""


def keep_lines(
    owner: Any, lines: UntilDeleted[Line | None], broke: Callable[[str, Exception], None]
) -> Callable[[], None]:
    """Of each object of a class, the user's line that made it; called back, it is as it was."""
    original = owner.__init__

    @functools.wraps(original)
    def __init__(made: Any, *args: Any, **kwargs: Any) -> None:
        try:
            lines.keep(made, users_line(sys._getframe(1)))
        except Exception as error:
            broke(f"{owner.__name__} made", error)
        original(made, *args, **kwargs)

    owner.__init__ = __init__
    return lambda: setattr(owner, "__init__", original)


def function_line(function: Any) -> Line | None:
    """Where the user has written a function; None if it is not the user's own."""
    while isinstance(function, functools.partial):
        function = function.func
    code = getattr(function, "__code__", None)
    if code is None or not is_users(code.co_filename):
        return None
    return Line(full_path(code.co_filename), code.co_firstlineno, code.co_name)


class Places:
    """The places of one process, each told once to `fact`, which writes to the journal."""

    def __init__(self, fact: Callable[..., None]) -> None:
        self._fact = fact
        self._told: set[tuple[str, str, int, str]] = set()

    def see(self, what: str, frame: FrameType | None, **details: Any) -> None:
        """Something happens, called from this frame: tell the user's line, if it is a new one."""
        self.tell(what, users_line(frame), **details)

    def tell(self, what: str, line: Line | None, **details: Any) -> None:
        if line is None or len(self._told) >= MOST_PLACES:
            return
        key = (what, line.file, line.line, repr(details))
        if key in self._told:
            return
        self._told.add(key)
        self._fact(
            type="place", what=what, file=line.file, line=line.line, function=line.function,
            details=details, monotonic_ns=time.monotonic_ns(),
        )  # fmt: skip
