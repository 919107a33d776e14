"""A line on the terminal that names a long operation, and disappears when it is over."""

import sys
import threading

_WORTH_SHOWING_S = 2.0
_ERASE = "\r\033[K"


class ProgressLine:
    """`with ProgressLine(localized(...)):` shows nothing if that takes less than two seconds.

    Nothing else may be printed meanwhile.
    """

    def __init__(self, what: str) -> None:
        self._what, self._over = what, threading.Event()
        self._thread: threading.Thread | None = None

    def __enter__(self) -> "ProgressLine":
        if sys.stderr.isatty():
            self._thread = threading.Thread(target=self._show, daemon=True)
            self._thread.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._over.set()
        if self._thread is not None:
            self._thread.join()

    def _show(self) -> None:
        if self._over.wait(_WORTH_SHOWING_S):
            return
        sys.stderr.write(f"strobe: {self._what} ...")
        sys.stderr.flush()
        self._over.wait()
        sys.stderr.write(_ERASE)
        sys.stderr.flush()
