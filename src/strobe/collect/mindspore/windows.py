"""Windows of full recording of MindSpore, by driving its profiler.

On a CPU, all that `mindspore.profiler` does is to switch a profiler of its C++ side on and off,
create folders, and convert the resulting files to a timeline. We switch it ourselves and keep the
files: they contain every run of every operator, and nothing is printed or computed in the training.
If there is a device, `mindspore.profiler.profile` does more, and is used as it is.

Two of its profilers at once lose the data of both, so ours defers to the user's own.
"""

import contextlib
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from strobe.collect.mindspore import versions
from strobe.collect.mindspore.arguments import OperatorArguments
from strobe.collect.mindspore.cells import CellCalls
from strobe.collect.notices import notice
from strobe.collect.recorder import Recorder
from strobe.collect.steps import StepCount
from strobe.collect.window_export import compress
from strobe.collect.windows import Windows
from strobe.model.options import Options

# Totals of what the other files have run by run.
_NEEDLESS = ("cpu_op_detail_info_*", "cpu_op_type_info_*")


class MindSporeWindows(Windows):
    FRAMEWORK = "mindspore"

    def __init__(self, recorder: Recorder, steps: StepCount) -> None:
        super().__init__(recorder, steps)
        # Called when a window begins: the data pipeline is sampled as well.
        self.on_begin: Callable[[], None] | None = None
        # The script's own errors that were raised by our waiting for its operators. Only the first
        # waiter gets them, so the script's next call raises them.
        self.owed: list[Exception] = []
        self.cells = CellCalls(recorder, _wait_for_operators)
        self._arguments = OperatorArguments(recorder, self.cells.gradients.made)
        self._is_starting = False
        self._folders = 0
        # Folders of windows that ended because the script started a profiler of its own.
        self._cut_short: set[Path] = set()

    def at_boundary(self) -> None:
        if self._steps.is_new:
            self._learned()
        super().at_boundary()

    def hindrance(self) -> str:
        from mindspore.profiler.profiler_interface import ProfilerInterface

        if ProfilerInterface.is_initialized:
            return notice("another-profiler", name="mindspore.profiler")
        return ""

    def start_profiler(self, options: Options) -> Any:
        folder = self._new_folder()
        self._wait()
        if device_target() == "CPU":
            if options.modules or options.record_shapes:
                self.cells.begin()
            if options.record_shapes:
                self._arguments.begin()
            return OnHost(folder, options)
        self._is_starting = True
        try:
            return _OnDevice(folder, options)
        finally:
            self._is_starting = False

    def began(self, options: Options) -> None:
        if self.on_begin is not None and options.data_process:
            self.on_begin()

    def stop_profiler(self, profiler: Any) -> Any:
        self._wait()
        profiler.stop()
        self.cells.write(profiler.folder)
        self._arguments.write(profiler.folder)
        return profiler.folder

    def write(self, recorded: Any, stem: Path) -> tuple[Path, int]:
        target = Path(f"{stem}.mindspore")
        size = 0
        for path in sorted(recorded.rglob("*")):
            if any(path.match(name) for name in _NEEDLESS):
                path.unlink()
            elif path.is_file():
                size += path.stat().st_size
                compress(path, path.with_name(f"{path.name}.gz"))
        if not size:
            shutil.rmtree(recorded, ignore_errors=True)
            raise OSError(
                "the script's own profiler started during it, and MindSpore keeps the operators of "
                "only one profiler"
                if recorded in self._cut_short
                else "MindSpore wrote no operators; is the disk full?"
            )
        os.replace(recorded, target)
        return target, size

    def abandon(self, profiler: Any) -> None:
        """The whole process is recorded, so any thread can end it."""
        self._learned()
        with contextlib.suppress(Exception):
            profiler.stop()
        shutil.rmtree(profiler.folder, ignore_errors=True)

    def _learned(self) -> None:
        """The step that shows cells and the arguments of operators has ended."""
        self.cells.rest()
        self._arguments.rest()

    def _wait(self) -> None:
        try:
            _wait_for_operators()
        except Exception as error:
            self.owed.append(error)

    def _new_folder(self) -> Path:
        """Next to the ranks: which of them this process is may not be known yet."""
        self._folders += 1
        folder = self.recorder.run / f".mindspore-{os.getpid()}-{self._folders}"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        return folder

    def give_way(self) -> Callable[[], None]:
        """Detect the user's own profilers, from their warm-up on; returns the undo."""
        from mindspore.profiler.profiler_interface import ProfilerInterface

        original = ProfilerInterface.__dict__["init"]
        began = self.recorder.guarded(self.other_began)

        def init(cls: Any) -> Any:
            began()
            return original.__func__(cls)

        ProfilerInterface.init = classmethod(init)

        def undo() -> None:
            ProfilerInterface.init = original

        return undo

    def other_began(self) -> None:
        if self._profiler is not None and not self._is_starting:
            self._cut_short.add(self._profiler.folder)
            self._defer(notice("deferred", name="mindspore.profiler"))


class OnHost:
    """What mindspore.profiler does on a CPU, without its folders, logs and timelines."""

    def __init__(self, folder: Path, options: Options) -> None:
        from mindspore import _c_expression

        self.folder = folder
        self._profiler = _c_expression.Profiler.get_instance("CPU")
        self._profiler.init(str(folder))
        self._profiler.step_profiling_enable(True)
        self._profiler.enable_op_time()
        if options.profile_memory or options.sample_rate > 0:
            self._profiler.enable_profile_memory()

    def stop(self) -> None:
        self._profiler.stop()


class _OnDevice:
    """Its analysis, which writes the text files that we read, runs when it is stopped."""

    def __init__(self, folder: Path, options: Options) -> None:
        from mindspore import profiler

        self.folder = folder
        activities = [profiler.ProfilerActivity.CPU]
        if options.profile_device:
            wanted = "GPU" if device_target() == "GPU" else "NPU"
            activities.append(getattr(profiler.ProfilerActivity, wanted))
        level = profiler.ProfilerLevel.Level1
        self._profiler = profiler.profile(
            activities=activities, with_stack=options.with_stack,
            profile_memory=options.profile_memory, record_shapes=options.record_shapes,
            on_trace_ready=profiler.tensorboard_trace_handler(str(folder)),
            experimental_config=profiler._ExperimentalConfig(profiler_level=level),
        )  # fmt: skip

    def stop(self) -> None:
        self._profiler.stop()


def device_target() -> str:
    from mindspore import context

    return str(context.get_context("device_target"))


def _wait_for_operators() -> None:
    """Without graphs operators run asynchronously: a window must contain whole steps."""
    home = versions.executors()
    if home is not None:
        home._pynative_executor.sync()
