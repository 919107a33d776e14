"""`strobe.log({...})` and its siblings: what a script logs goes to the run that records it.

Without a recording, the first call begins a run of its own, which holds metrics and nothing else.
Nothing here raises into training: what cannot be logged is reported once, on stderr and in the run.
"""

import atexit
import os
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from strobe.collect import recorder
from strobe.collect.metrics.arrays import image_job, tensor_job
from strobe.collect.metrics.histograms import histogram_job
from strobe.collect.metrics.log import MetricLog
from strobe.collect.recorder import Recorder
from strobe.model.metric_tables import LINEAGE_KINDS
from strobe.model.new_run import BASE_DIR
from strobe.model.options import Options

# Set to a folder, it is where a run of metrics alone is written.
OUTPUT_VARIABLE = "STROBE_OUTPUT"

# The recorder that takes what this process logs: the first that was active when something was.
_home: Recorder | None = None
_is_refused = False


def log(metrics: Mapping[str, Any], step: int | None = None) -> None:
    """Log numbers by tag: `strobe.log({"loss": loss, "accuracy": accuracy}, step=step)`.

    Tensors and arrays of one element are numbers, too; reading them never stalls the device. A text
    is logged as text, and the tags of nested dictionaries are joined by "/". Without a step, it is
    the training step in which it was logged.
    """
    home = _home
    if home is None or home.metrics.is_closed or not home.metrics.is_open:
        home = _find_home()
        if home is None:
            return
    try:
        home.metrics.scalars(metrics, step)
    except Exception as error:
        _report(home, "log", error)


def log_text(tag: str, text: str, step: int | None = None) -> None:
    _call("log_text", lambda metrics: metrics.text(tag, text, step))


def log_image(tag: str, image: Any, step: int | None = None) -> None:
    """An array or tensor of shape (height, width), (height, width, channels) or (channels, height,
    width), of bytes or of numbers from 0 to 1; a PIL image; or the bytes of a PNG or JPEG file. One
    more dimension in front is a batch of images.
    """
    _call("log_image", lambda metrics: metrics.submit(*image_job(tag, image, step)))


def log_histogram(tag: str, values: Any, step: int | None = None, bins: int | None = None) -> None:
    """The distribution of the elements of an array or tensor."""
    _call("log_histogram", lambda metrics: metrics.submit(*histogram_job(tag, values, step, bins)))


def log_tensor(tag: str, tensor: Any, step: int | None = None) -> None:
    """Every element of an array or tensor, in its own precision."""
    _call("log_tensor", lambda metrics: metrics.submit(*tensor_job(tag, tensor, step)))


def log_hyperparameters(values: Mapping[str, Any]) -> None:
    """Settings of the training by name, such as `vars(args)`. Nested names are joined by "/"."""
    _call("log_hyperparameters", lambda metrics: metrics.hyperparameters(values))


def log_lineage(values: Mapping[str, Any], kind: str = "custom", step: int | None = None) -> None:
    """Facts about where a model comes from: the version of its data, the code, a result."""
    if kind not in LINEAGE_KINDS:
        home = _find_home()
        if home is not None:
            kinds = ", ".join(LINEAGE_KINDS)
            home.warn("metrics", f"log_lineage: kind is {kind!r}; it can be one of: {kinds}")
        return
    _call("log_lineage", lambda metrics: metrics.lineage(kind, values, step))


def metric_log() -> MetricLog | None:
    """Where this process logs to; begins a run if there is none. None if it cannot be written."""
    home = _find_home()
    return home.metrics if home is not None else None


def home() -> Recorder | None:
    """The recorder that takes what this process logs."""
    return _find_home()


def _call(name: str, action: Any) -> None:
    home = _find_home()
    if home is None:
        return
    try:
        action(home.metrics)
    except Exception as error:
        _report(home, name, error)


def _report(home: Recorder, name: str, error: Exception) -> None:
    home.warn("metrics", f"strobe.{name} could not log a value: {type(error).__name__}: {error}")


def _find_home() -> Recorder | None:
    global _home
    try:
        if _home is None or _home.metrics.is_closed:
            _home = recorder.current or _new_home()
        if _home is not None and not _home.metrics.is_open and _is_main_process():
            _home.begin_training()
    except Exception as error:  # such as a folder that cannot be named
        _refuse(f"{type(error).__name__}: {error}")
    return _home


def _is_main_process() -> bool:
    """Not a child of multiprocessing, which logs once it trains: it has a rank then."""
    processes = sys.modules.get("multiprocessing.process")
    return processes is None or processes.parent_process() is None


def _new_home(path: Path | None = None) -> Recorder | None:
    """A run that holds what the script logs, and nothing else."""
    from strobe.collect.start.new_run import new_recorder

    if _is_refused or not _is_main_process():
        return None
    options = Options(light=True, sample_stacks=False)
    made = new_recorder(path or _default_path(), options, "strobe.log", "strobe.log")
    try:
        folder = made.run
    except OSError as error:
        _refuse(f"{made.home}: {error.strerror or error}")
        return None
    made.say(f"logging to {folder}")
    atexit.register(lambda: made.close(recorder.end_state()))
    return made


def _refuse(why: str) -> None:
    global _is_refused
    if not _is_refused:
        _is_refused = True
        sys.stderr.write(f"strobe: nothing that this script logs is recorded: {why}\n")


def _default_path() -> Path:
    given = os.environ.get(OUTPUT_VARIABLE)
    if given:
        return Path(given)
    script = Path(getattr(sys, "argv", [""])[0] or "python").stem or "python"
    return Path(BASE_DIR) / f"{script}-{time.strftime('%Y%m%d-%H%M%S')}"


def _after_fork_in_child() -> None:
    """A child of a process that logs on its own does not write to its parent's files."""
    global _home
    if _home is not None and _home is not recorder.current:
        _home.after_fork_in_child()


os.register_at_fork(after_in_child=_after_fork_in_child)
