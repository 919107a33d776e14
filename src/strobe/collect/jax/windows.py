"""Windows of full recording of JAX, by driving a session of XLA's own profiler.

`jax.profiler.stop_trace` writes a second copy as JSON, which takes most of its time, and to one
file for all processes of a host. Stopping a session returns its bytes instead. (It is a private
class.) The Python tracer is the most expensive part and is off unless stacks are requested. Windows
begin and end on a thread of their own: stopping a session takes milliseconds, during which training
goes on. What runs while one ends or begins is in none, so a window has few pieces.
"""

import queue
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from strobe.collect.notices import notice
from strobe.collect.recorder import Recorder
from strobe.collect.steps import StepCount
from strobe.collect.window_export import compress
from strobe.collect.windows import Windows
from strobe.model.journal import BESIDE_TRAINING, Mark
from strobe.model.options import Options

SUFFIX = ".xplane.pb"

# How long the end of the process waits for the profiler to stop: it takes a second per million
# events.
_PATIENCE_S = 30.0


class JaxWindows(Windows):
    FRAMEWORK = "jax"
    FIRST_PIECE_STEPS = 32  # some MB at most
    IS_SEAMLESS = False

    def __init__(self, recorder: Recorder, steps: StepCount) -> None:
        super().__init__(recorder, steps)
        # The tasks of the thread on which windows begin and end; None ends it.
        self._errands: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._runner: threading.Thread | None = None
        # Called when a window has ended.
        self.tell_costs: Callable[[], None] | None = None

    def at_boundary(self) -> None:
        """Called from any thread; windows begin and end on our own thread."""
        self._steps.is_new = False
        self._errands.put(super().at_boundary)
        if self._runner is None:
            self._runner = threading.Thread(target=self._run, name="strobe-windows", daemon=True)
            self._runner.start()

    def close(self) -> None:
        runner, self._runner = self._runner, None
        self._is_over = True
        if runner is not None:
            self._errands.put(self.end)
            self._errands.put(None)
            runner.join(_PATIENCE_S)
        super().close()
        self._exporter = None  # it has ended: at exit this is called twice

    def _run(self) -> None:
        while (errand := self._errands.get()) is not None:
            self.recorder.guarded(errand)()

    def after_fork_in_child(self, steps: StepCount) -> None:
        super().after_fork_in_child(steps)
        self._errands, self._runner = queue.SimpleQueue(), None

    def hindrance(self) -> str:
        if _state().profile_session is not None:
            return notice("another-profiler", name="jax.profiler")
        return ""

    def start_profiler(self, options: Options) -> Any:
        import jax
        from jax._src.lib import _profiler

        chosen = jax.profiler.ProfileOptions()
        chosen.python_tracer_level = int(options.with_stack)
        chosen.host_tracer_level = 2  # the lowest level with operators
        if not options.profile_device:
            chosen.device_tracer_level = 0
        return _profiler.ProfilerSession(chosen)

    def stop_profiler(self, profiler: Any) -> Any:
        recorded = profiler.stop()
        if self.tell_costs is not None:
            try:
                self.tell_costs()
            except Exception as error:  # not all devices are available
                self.tell_costs = None
                self.recorder.problem("jax", f"XLA does not report the work of programs: {error}")
        return recorded

    def write(self, recorded: Any, stem: Path) -> tuple[Path, int]:
        plain, packed = Path(f"{stem}{SUFFIX}"), Path(f"{stem}{SUFFIX}.gz")
        temporary = plain.with_name(f".{plain.name}")
        try:
            temporary.write_bytes(recorded)
            temporary.replace(plain)
        except OSError:
            temporary.unlink(missing_ok=True)
            raise
        compress(plain, packed)
        return packed, len(recorded)

    def _own_work(self, began_ns: int) -> None:
        """Training went on meanwhile."""
        length_ns = time.monotonic_ns() - began_ns
        self.recorder.mark(Mark.OWN_WORK, BESIDE_TRAINING, length_ns, began_ns)

    def give_way(self) -> Callable[[], None]:
        """Only one session is possible, and the script's own takes precedence; returns the undo."""
        import jax

        home: Any = __import__("jax._src.profiler", fromlist=["start_trace"])
        original = home.start_trace
        make_way = self.recorder.guarded(self.other_begins)

        def start_trace(*args: Any, **kwargs: Any) -> Any:
            make_way()
            return original(*args, **kwargs)

        start_trace.__doc__ = original.__doc__
        home.start_trace = jax.profiler.start_trace = start_trace

        def undo() -> None:
            home.start_trace = jax.profiler.start_trace = original

        return undo

    def other_begins(self) -> None:
        if self._profiler is not None:
            self._defer(notice("deferred", name="jax.profiler"))


def _state() -> Any:
    from jax._src import profiler

    return profiler._profile_state
