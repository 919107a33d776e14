"""`DynamicProfilerMonitor`: MindSpore's name for windows that are asked for while training runs."""

import contextlib
import os
from pathlib import Path
from typing import Any

from strobe.collect import recorder
from strobe.collect.on_demand import config
from strobe.collect.profiler import Profiler


class DynamicProfilerMonitor:
    """From now on `profiler_config.json` in `cfg_path` is watched, and windows that it asks for are
    recorded to `output_path`, by all ranks of the job together.

    In a loop of one's own nothing more is needed. `step()` says where a step ends, for loops in
    which that is not seen; the methods of a callback do the same. Under `strobe run`, whose run
    is recorded to, only the file is added.
    """

    def __init__(
        self, cfg_path: str | os.PathLike[str],
        output_path: str | os.PathLike[str] = "./dyn_profile_data",
        poll_interval: float | None = None, **options: Any,
    ) -> None:  # fmt: skip
        folder = os.path.abspath(cfg_path)
        self._profiler = Profiler(output_path, dynamic=folder, **options)
        with contextlib.suppress(OSError):  # said when the file is first looked for
            config.write_first(Path(folder), self._profiler.options)
        active = recorder.current
        if active is not None:
            active.watch_config(folder)
            return
        self._profiler.start()
        active = recorder.current
        if active is not None and poll_interval is not None:
            active.notes.append(
                "poll_interval has no effect: a change of profiler_config.json is seen at once, "
                "on a shared file system within a second"
            )

    @property
    def run_path(self) -> Any:
        """The folder recorded to."""
        active = recorder.current
        return self._profiler.run_path or (active.run if active is not None else None)

    def __enter__(self) -> "DynamicProfilerMonitor":
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def step(self) -> None:
        """A step of training ends here."""
        from strobe.collect.profiler import step

        step()

    def stop(self) -> None:
        """Watch no more; a window under way ends."""
        if self._profiler.is_recording:
            self._profiler.stop()

    # As a callback of MindSpore's, in its older words and its newer ones.

    def step_end(self, run_context: Any = None) -> None:
        self.step()

    def on_train_step_end(self, run_context: Any = None) -> None:
        self.step()

    def end(self, run_context: Any = None) -> None:
        self.stop()

    def on_train_end(self, run_context: Any = None) -> None:
        self.stop()
