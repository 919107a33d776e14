"""A process that records, without hooks into frameworks, and what is recorded of its loggers."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from strobe.collect import recorder
from strobe.collect.loggers import calls
from strobe.collect.recorder import Recorder
from strobe.model.options import Options
from tests.collect.metrics.logs import Logged


class Recording:
    def __init__(self, active: Recorder) -> None:
        self.recorder = active
        self.warnings: list[str] = []

    @property
    def logged(self) -> Logged:
        """What is in the run; the recording ends."""
        self.recorder.metrics.close()
        assert self.recorder.raw is not None
        return Logged(self.recorder.raw)


@contextmanager
def recording(folder: Path, install: Callable[[], None] = lambda: None) -> Iterator[Recording]:
    """What `install` wraps is as it was afterwards."""
    active = Recorder(folder / "run", Options(light=True, sample_stacks=False), owner="the test")
    found = Recording(active)
    active.warn = lambda source, what: found.warnings.append(what)  # type: ignore[method-assign]
    recorder.current, before = active, recorder.current
    raw = folder / "run" / "rank_0" / "raw"
    raw.mkdir(parents=True)
    active.raw, active.rank = raw, 0
    active.metrics.open(raw)
    try:
        with calls.installing(active, "the test"):
            install()
        yield found
    finally:
        active.close("finished")
        recorder.current = before
