"""Windows of full recording of JAX: a session of XLA's own profiler, driven by us.

`jax.profiler.stop_trace` writes a second copy as JSON, which takes most of its time, and to one
file for all processes of a host. A session that is stopped gives its bytes instead. (It is a
private class.) The Python tracer costs most while it runs and is off unless stacks are asked for.
Windows begin and end on a thread of their own: to stop a session takes milliseconds, in which
training goes on. What runs while one ends or begins is in none, so a window has few pieces.
"""

import queue
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from strobe.collect.recorder import Recorder
from strobe.collect.steps import StepCount
from strobe.collect.window_export import compress
from strobe.collect.windows import Windows
from strobe.model.journal import BESIDE_TRAINING, Mark
from strobe.model.options import Options

SUFFIX = ".xplane.pb"

# How long the end of the process waits for the profiler to stop: it takes a second for a million
# events.
_PATIENCE_S = 30.0


class JaxWindows(Windows):
    FRAMEWORK = "jax"
    FIRST_PIECE_STEPS = 32  # some MB at most
    IS_SEAMLESS = False

    def __init__(self, recorder: Recorder, steps: StepCount) -> None:
        super().__init__(recorder, steps)
        # What the thread has to do that windows begin and end on; None is its end.
        self._errands: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._runner: threading.Thread | None = None
        # Called when a window has ended.
        self.tell_costs: Callable[[], None] | None = None

    def at_boundary(self) -> None:
        """From any thread: what is to be done is done on our own."""
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
            return (
                "another profiler (jax.profiler) is active in this process: no window of full "
                "recording was taken while it ran"
            )
        return ""

    def start_profiler(self, options: Options) -> Any:
        import jax
        from jax._src.lib import _profiler

        chosen = jax.profiler.ProfileOptions()
        chosen.python_tracer_level = int(options.with_stack)
        chosen.host_tracer_level = 2  # the least with operators
        if not options.profile_device:
            chosen.device_tracer_level = 0
        return _profiler.ProfilerSession(chosen)

    def stop_profiler(self, profiler: Any) -> Any:
        recorded = profiler.stop()
        if self.tell_costs is not None:
            try:
                self.tell_costs()
            except Exception as error:  # not of all devices are there any
                self.tell_costs = None
                self.recorder.problem("jax", f"XLA does not tell the work of programs: {error}")
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
        """Training went on beside it."""
        length_ns = time.monotonic_ns() - began_ns
        self.recorder.mark(Mark.OWN_WORK, BESIDE_TRAINING, length_ns, began_ns)

    def give_way(self) -> Callable[[], None]:
        """Only one session can be: the script's own comes first; returns what undoes it."""
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
            self._make_way("the script started a profiler of its own: full recording made way")


def _state() -> Any:
    from jax._src import profiler

    return profiler._profile_state
