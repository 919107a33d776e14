"""`DynamicProfilerMonitor`: MindSpore's name for windows on demand."""

import contextlib
import os
from pathlib import Path
from typing import Any

from strobe.collect import recorder
from strobe.collect.on_demand import config
from strobe.collect.profiler import Profiler


class DynamicProfilerMonitor:
    """From now on `profiler_config.json` in `cfg_path` is watched, and windows that it requests are
    recorded to `output_path`, by all ranks of the job together.

    A plain loop needs nothing more. `step()` marks the end of a step in loops where it is not
    detected; the methods of a callback do the same. Under `strobe run`, the windows go to its run,
    and only the file is added.
    """

    def __init__(
        self, cfg_path: str | os.PathLike[str],
        output_path: str | os.PathLike[str] = "./dyn_profile_data",
        poll_interval: float | None = None, **options: Any,
    ) -> None:  # fmt: skip
        folder = os.path.abspath(cfg_path)
        self._profiler = Profiler(output_path, dynamic=folder, **options)
        with contextlib.suppress(OSError):  # reported when the file is first checked
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
        """The folder that is recorded to."""
        active = recorder.current
        return self._profiler.run_path or (active.run if active is not None else None)

    def __enter__(self) -> "DynamicProfilerMonitor":
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def step(self) -> None:
        """A training step ends here."""
        from strobe.collect.profiler import step

        step()

    def stop(self) -> None:
        """Stop watching; a window in progress ends."""
        if self._profiler.is_recording:
            self._profiler.stop()

    # As a callback of MindSpore, with its older and newer method names.

    def step_end(self, run_context: Any = None) -> None:
        self.step()

    def on_train_step_end(self, run_context: Any = None) -> None:
        self.step()

    def end(self, run_context: Any = None) -> None:
        self.stop()

    def on_train_end(self, run_context: Any = None) -> None:
        self.stop()
