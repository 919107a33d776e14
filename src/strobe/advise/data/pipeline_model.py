"""A small model of training on batches from workers, to predict a step with other settings.

Batches are requested from the workers in turn. At most `prefetch` batches per worker are requested
in advance, and training takes them in order. Reading needs no core; everything else does. If more
cores are needed than the machine has, everything slows down equally.
"""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, replace

# Enough batches for a mean, after the queues have filled.
_BATCHES = 80
# Work that has less than this left is done: the rest is rounding.
_DONE_NS = 1e-3


@dataclass(frozen=True)
class Work:
    """The times of one batch, in nanoseconds."""

    reading_ns: float = 0.0  # needs no core
    transform_ns: float = 0.0
    collate_ns: float = 0.0
    transfer_ns: float = 0.0
    others_ns: float = 0.0  # during transform: other processes were using the cores

    @property
    def on_core_ns(self) -> float:
        return self.transform_ns + self.collate_ns + self.transfer_ns

    @property
    def off_core_ns(self) -> float:
        return self.reading_ns + self.others_ns

    @property
    def all_ns(self) -> float:
        return self.off_core_ns + self.on_core_ns

    def scaled(self, stage: str, ratio: float) -> "Work":
        """With the time of a stage scaled by this ratio."""
        others_ns = self.others_ns * ratio if stage == "transform" else self.others_ns
        left_ns = getattr(self, f"{stage}_ns") * ratio
        return replace(self, **{f"{stage}_ns": left_ns, "others_ns": others_ns})


@dataclass(frozen=True)
class Setting:
    """How the pipeline runs, and on which cores."""

    workers: int
    training_ns: float  # per batch, if nothing else uses the cores
    prefetch: int = 2
    cores: float = 1.0
    training_cores: float = 1.0  # used by training
    receive_ns: float = 0.0  # for training to receive a batch that is ready


@dataclass(frozen=True)
class Outcome:
    batch_ns: float  # per batch, loading and training
    slowdown: float  # of what workers do on cores, because there are too few cores


def run(works: Sequence[Work], setting: Setting) -> Outcome:
    """Simulate a pipeline until its throughput is steady."""
    if not works:
        return Outcome(setting.training_ns, 1.0)
    if setting.workers == 0:  # the training process builds batches itself, without a transfer
        making_ns = sum(w.all_ns - w.transfer_ns for w in works) / len(works)
        return Outcome(setting.training_ns + making_ns, 1.0)
    return _Pipeline(works, setting).run()


@dataclass
class _Worker:
    requests: "deque[int]"
    batch: int = -1
    off_core_ns: float = 0.0
    on_core_ns: float = 0.0

    @property
    def is_on_core(self) -> bool:
        return self.batch >= 0 and self.off_core_ns <= _DONE_NS


class _Pipeline:
    def __init__(self, works: Sequence[Work], setting: Setting) -> None:
        self._works, self._setting = works, setting
        self._workers = [_Worker(deque()) for _ in range(setting.workers)]
        self._requested = self._taken = 0
        self._ready: set[int] = set()
        self._training_ns = 0.0
        self._on_core_ns = self._worked_ns = 0.0
        for _ in range(setting.workers * max(1, setting.prefetch)):
            self._request()

    def run(self) -> Outcome:
        fill = self._setting.workers * max(1, self._setting.prefetch)
        last = fill + max(_BATCHES, len(self._works))
        now_ns = settled_ns = 0.0
        while self._taken < last:
            while self._training_ns <= _DONE_NS and self._taken in self._ready:
                self._take()
                if self._taken == fill:
                    settled_ns = now_ns
                if self._taken == last:
                    break
            else:
                now_ns += self._advance()
        slowdown = self._worked_ns / self._on_core_ns if self._on_core_ns else 1.0
        return Outcome((now_ns - settled_ns) / (last - fill), max(1.0, slowdown))

    def _take(self) -> None:
        self._ready.remove(self._taken)
        self._training_ns = self._setting.training_ns + self._setting.receive_ns
        self._taken += 1
        self._request()

    def _request(self) -> None:
        self._workers[self._requested % len(self._workers)].requests.append(self._requested)
        self._requested += 1

    def _begin(self, worker: _Worker) -> None:
        if worker.batch < 0 and worker.requests:
            worker.batch = worker.requests.popleft()
            work = self._works[worker.batch % len(self._works)]
            worker.off_core_ns, worker.on_core_ns = work.off_core_ns, work.on_core_ns

    def _advance(self) -> float:
        """Go on until the next piece of work is done, and return how long that takes."""
        for worker in self._workers:
            self._begin(worker)
        trains = self._training_ns > _DONE_NS
        computing = sum(worker.is_on_core for worker in self._workers)
        demand = computing + (self._setting.training_cores if trains else 0.0)
        speed = min(1.0, self._setting.cores / demand) if demand else 1.0
        waits = [self._training_ns / speed] if trains else []
        for worker in self._workers:
            if worker.is_on_core:
                waits.append(worker.on_core_ns / speed)
            elif worker.batch >= 0:
                waits.append(worker.off_core_ns)
        step_ns = min(waits)
        if trains:
            self._training_ns -= step_ns * speed
        for worker in self._workers:
            self._work(worker, step_ns, speed)
        return step_ns

    def _work(self, worker: _Worker, step_ns: float, speed: float) -> None:
        if worker.is_on_core:
            worker.on_core_ns -= step_ns * speed
            self._on_core_ns += step_ns * speed
            self._worked_ns += step_ns
        elif worker.batch >= 0:
            worker.off_core_ns -= step_ns
        if worker.is_on_core and worker.on_core_ns <= _DONE_NS:
            self._ready.add(worker.batch)
            worker.batch = -1
