"""A small model of training on batches that workers make: how long is a step, were things other?

Batches go round the workers in turn. At most `prefetch` times the number of workers are ordered and
not yet taken, and training takes them in order, as PyTorch's DataLoader does it. Reading needs no
core; everything else does, and where more is wanted than the machine has, all slow down alike.
"""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, replace

# So many batches are enough for a mean: longer pipelines only need longer to fill.
_BATCHES = 80
# What is left of a piece of work after rounding: less than this many nanoseconds is done.
_DONE_NS = 1e-3


@dataclass(frozen=True)
class Work:
    """What one batch takes, in nanoseconds."""

    reading_ns: float = 0.0  # needs no core
    transform_ns: float = 0.0
    collate_ns: float = 0.0
    transfer_ns: float = 0.0
    others_ns: float = 0.0  # of transform, the time in which others on the machine had the cores

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
        """With this part left of what a stage takes."""
        others_ns = self.others_ns * ratio if stage == "transform" else self.others_ns
        left_ns = getattr(self, f"{stage}_ns") * ratio
        return replace(self, **{f"{stage}_ns": left_ns, "others_ns": others_ns})


@dataclass(frozen=True)
class Setting:
    """How the pipeline is run, and on what."""

    workers: int
    training_ns: float  # of a batch, with all cores to itself
    prefetch: int = 2
    cores: float = 1.0
    training_cores: float = 1.0  # that training keeps busy
    receive_ns: float = 0.0  # for training to take a batch that lies ready


@dataclass(frozen=True)
class Outcome:
    batch_ns: float  # from one batch trained on to the next
    slowdown: float  # of the work of workers on cores, because there are too few of them


def run(works: Sequence[Work], setting: Setting) -> Outcome:
    """Let a pipeline run until it has settled."""
    if not works:
        return Outcome(setting.training_ns, 1.0)
    if setting.workers == 0:  # training makes them itself, and hands nothing over
        made = sum(w.all_ns - w.transfer_ns for w in works) / len(works)
        return Outcome(setting.training_ns + made, 1.0)
    return _Pipeline(works, setting).run()


@dataclass
class _Worker:
    orders: "deque[int]"
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
        self._ordered = self._taken = 0
        self._ready: set[int] = set()
        self._training_ns = 0.0
        self._on_core_ns = self._worked_ns = 0.0
        for _ in range(setting.workers * max(1, setting.prefetch)):
            self._order()

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
        self._order()

    def _order(self) -> None:
        self._workers[self._ordered % len(self._workers)].orders.append(self._ordered)
        self._ordered += 1

    def _take_up(self, worker: _Worker) -> None:
        if worker.batch < 0 and worker.orders:
            worker.batch = worker.orders.popleft()
            work = self._works[worker.batch % len(self._works)]
            worker.off_core_ns, worker.on_core_ns = work.off_core_ns, work.on_core_ns

    def _advance(self) -> float:
        """To the next moment at which something is done; how long that took."""
        for worker in self._workers:
            self._take_up(worker)
        trains = self._training_ns > _DONE_NS
        wanted = sum(worker.is_on_core for worker in self._workers)
        demand = wanted + (self._setting.training_cores if trains else 0.0)
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
