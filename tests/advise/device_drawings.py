"""Steps on a device, drawn: a host that launches, a device that works, waits between them."""

from strobe.advise.training import Training
from tests.helpers import make_run

STEP_US = 100
STEPS = 10


class Drawing:
    """Ten steps of 100 µs on rank 0 (or more ranks), each drawn alike; times in µs of its step."""

    def __init__(self):
        self.lines = []
        self.args = {"event_id": [], "direction": [], "host_memory": [], "bytes": [],
                     "precision": []}  # fmt: skip

    def steps(self, rank=0, count=STEPS, phases=None):
        for number in range(1, count + 1):
            begin = (number - 1) * STEP_US
            self._line(rank, "steps", "step", f"step~{number}", begin, begin + STEP_US, number)
            now = begin
            for name, length in (phases or {"forward": STEP_US}).items():
                self._line(rank, "steps", "phase", name, now, now + length, number)
                now += length
        return self

    def host(self, kind, name, start, end, rank=0, parent=None):
        """The same call in every step; returns the numbers of the lines."""
        return self._each(rank, "main", kind, name, start, end,
                          [None] * STEPS if parent is None else parent, "parent")  # fmt: skip

    def work(self, kind, name, start, end, launchers=None, rank=0, stream="s7@cuda:0", **args):
        """The same work on the device in every step."""
        ids = self._each(rank, stream, kind, name, start, end, launchers or [None] * STEPS,
                         "launcher")  # fmt: skip
        if args:
            for id in ids:
                self.args["event_id"].append(id)
                for key in ("direction", "host_memory", "bytes", "precision"):
                    self.args[key].append(args.get(key))
        return self

    def launched(self, kind, name, launch, start, end, operator="aten::mm", **more):
        """Work with its launch, a call of 1 µs inside an operator."""
        parents = self.host("op", operator, launch, launch + 1)
        launchers = self.host("runtime", "launch", launch, launch + 1, parent=parents)
        return self.work(kind, name, start, end, launchers, **more)

    def training(self, tmp_path, devices=(), **tables):
        extra = {"kernel_args": self.args} if self.args["event_id"] else {}
        run = make_run(tmp_path, "\n".join(self.lines), {**extra, **tables})
        for rank in run.manifest.ranks:
            rank.devices = list(devices)
        return Training(run)

    def _each(self, rank, track, kind, name, start, end, others, key):
        ids = []
        for number, other in zip(range(1, STEPS + 1), others, strict=True):
            begin = (number - 1) * STEP_US
            ids.append(len(self.lines))
            self._line(rank, track, kind, name, begin + start, begin + end, number)
            if other is not None:
                self.lines[-1] += f" {key}={other}"
        return ids

    def _line(self, rank, track, kind, name, start, end, number):
        span = f"{round(start * 1000)}..{round(end * 1000)}"
        self.lines.append(f"{rank}/{track} {kind}:{name} {span} step={number}")
