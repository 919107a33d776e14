"""Check before recording starts whether it can work; if not, say what to do and let
training go on.
"""

import errno
import os
import shutil
import sys
from collections.abc import Callable, Collection
from pathlib import Path
from typing import TYPE_CHECKING

from strobe.collect import COLLECTORS, ranks
from strobe.collect.notices import notice
from strobe.model.options import MEGABYTE, Options

if TYPE_CHECKING:
    from strobe.collect.recorder import Recorder

# The first segments of a journal, and the tables of a light recording.
_LIGHT_BYTES = 32 * MEGABYTE
# For a window: the compressed traces, the tables, and temporary files while they are built.
_SHARE_ON_DISK = 0.5

# The first version of torch whose module calls can be recorded.
_OLDEST_TORCH = (2, 0)

# Between two samples the wall clock and the steady clock drift apart by microseconds, and
# suspending the machine stops the steady one; above this, the wall clock was set.
_JUMP_NS = 1_000_000_000


def refusal(path: Path) -> str | None:
    """Why nothing can be recorded there, and what to do; None if it can."""
    return _not_writable(path) or no_room(path)


def _nearest(path: Path) -> Path:
    """The folder itself, or its nearest existing parent."""
    folder = Path(os.path.abspath(path))
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    return folder


def _not_writable(path: Path) -> str | None:
    folder = _nearest(path)
    if not folder.is_dir():
        return notice("path-is-file", path=path, folder=folder)
    if not os.access(folder, os.W_OK | os.X_OK):
        is_whole_disk = os.statvfs(folder).f_flag & os.ST_RDONLY
        why = os.strerror(errno.EROFS if is_whole_disk else errno.EACCES)
        return notice("not-writable", path=path, folder=folder, reason=why)
    return None


def expected_bytes(options: Options) -> int:
    """The maximum size of a recording, as far as the options determine it."""
    if not options.takes_windows:
        return _LIGHT_BYTES
    return _LIGHT_BYTES + int(options.timeline_limit * MEGABYTE * _SHARE_ON_DISK)


def no_room(path: Path) -> str | None:
    """There is not even room for a light recording."""
    free = _free_if_little(path)
    if free is None:
        return None
    return notice("no-room", path=path, free=_megabytes(free))


def nearly_full(path: Path) -> str | None:
    """The same for `strobe run`, which records as much as fits."""
    free = _free_if_little(path)
    if free is None:
        return None
    return notice("nearly-full", path=path, free=_megabytes(free))


def _megabytes(size: int) -> str:
    return f"{size / MEGABYTE:.0f}"


def _free_if_little(path: Path) -> int | None:
    try:
        free = shutil.disk_usage(_nearest(path)).free
    except OSError:
        return None
    return free if free < _LIGHT_BYTES else None


def little_room(path: Path, options: Options) -> str | None:
    """There is room for a light recording, but maybe not for everything that the options allow."""
    try:
        free = shutil.disk_usage(_nearest(path)).free
    except OSError:
        return None
    expected = expected_bytes(options)
    # On a disk that is nearly full, no window begins; that is reported there.
    if free >= expected or free < _LIGHT_BYTES:
        return None
    return notice("little-room", path=path, free=_megabytes(free), expected=_megabytes(expected))


def warnings(recorder: "Recorder") -> list[str]:
    """What will be missing, known at the first training step."""
    found: list[Callable[[], str | None]] = [
        lambda: little_room(recorder.run, recorder.options),
        lambda: bad_version(recorder.frameworks.get("torch", "")),
        lambda: other_profiler(recorder.options),
        lambda: alone(recorder.asked),
    ]
    return [text for check in found if (text := check()) is not None]


def alone(asked: Collection[str]) -> str | None:
    """Communication was requested, but there is only one rank."""
    if "profile_communication" not in asked or ranks.of_this_process().world_size not in (None, 1):
        return None
    return notice("one-process")


def no_framework() -> str | None:
    """No known framework trains here: only what the script marks can be recorded."""
    import importlib.util

    def is_there(package: str) -> bool:
        try:
            return package in sys.modules or importlib.util.find_spec(package) is not None
        except (ImportError, ValueError, AttributeError):  # a stub in its place
            return False

    if any(map(is_there, COLLECTORS)):
        return None
    return notice("no-framework", frameworks=", ".join(COLLECTORS), python=sys.executable)


def bad_version(version: str) -> str | None:
    try:
        number = tuple(int(part) for part in version.split(".")[:2])
    except ValueError:  # no torch, or a custom build
        return None
    return notice("bad-torch", version=version) if number and number < _OLDEST_TORCH else None


class ClockWatch:
    """Detects when the wall clock was set while training ran: it is used to align ranks."""

    def __init__(self) -> None:
        self._difference_ns: int | None = None

    def jumped(self, steady_ns: int, wall_ns: int) -> str | None:
        before, self._difference_ns = self._difference_ns, wall_ns - steady_ns
        if before is None or abs(self._difference_ns - before) < _JUMP_NS:
            return None
        seconds = (self._difference_ns - before) / 1e9
        id = "clock-forward" if seconds > 0 else "clock-back"
        return notice(id, seconds=f"{abs(seconds):.1f}")


# Environment variables by which other profilers can be detected.
_OTHERS = {
    "NSYS_PROFILING_SESSION_ID": "Nsight Systems",
    "NV_COMPUTE_PROFILER_PERFWORKS_DIR": "Nsight Compute",
    "NV_NSIGHT_INJECTION_TRANSPORT_TYPE": "Nsight",
    "KINETO_USE_DAEMON": "the Kineto daemon (dynolog)",
    "PROFILING_MODE": "Ascend's msprof",
}
_INJECTED = "CUDA_INJECTION64_PATH"


def other_profiler(options: Options) -> str | None:
    """Only one profiler can trace a device at a time; the second gets nothing."""
    if not options.takes_windows:
        return None
    name = next((other for variable, other in _OTHERS.items()
                 if os.environ.get(variable) not in (None, "", "0", "false")), None)  # fmt: skip
    injected = os.environ.get(_INJECTED, "").lower()
    if name is None and ("nsight" in injected or "nsys" in injected or "cupti" in injected):
        name = "Nsight"
    if name is None and _is_xprof_active():
        name = "jax.profiler (XProf)"
    if name is None:
        return None
    return notice("other-profiler", name=name)


def _is_xprof_active() -> bool:
    profiler = sys.modules.get("jax._src.profiler")
    state = getattr(profiler, "_profile_state", None)
    return getattr(state, "profile_session", None) is not None
