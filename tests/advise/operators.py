"""Trainings whose steps hold given operators, drawn; some of the steps are recorded in full."""

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from strobe.advise.training import Training
from tests.advise.drawings import same, steps
from tests.helpers import make_run

COUNT, FIRST, LAST = 14, 6, 9  # steps, and the window of full recording
PHASES = ("forward", "backward", "update")


@dataclass
class Op:
    """An operator of a step, its length in us; `inside` run at its beginning, one after another."""

    name: str
    us: float
    shapes: list[Any] = field(default_factory=list)
    dtype: str = "float"
    scope: str | None = "net"
    inside: tuple["Op", ...] = ()
    of: int | None = None  # backward: the forward operator, as its place in the step
    flops: int | None = None
    node: str | None = None  # its own name in a compiled graph
    bytes: int | None = None
    us_at: dict[int, float] = field(default_factory=dict)  # its length in some of the steps

    def length_ns(self, step: int) -> int:
        return round(self.us_at.get(step, self.us) * 1000)


@dataclass
class _Drawing:
    lines: list[str]
    args: dict[str, list[Any]] = field(default_factory=lambda: {
        "event_id": [], "input_shapes": [], "input_dtypes": [], "is_backward": [], "flops": [],
        "node": [], "bytes": [], "output_shapes": [],
    })  # fmt: skip
    links: dict[str, list[Any]] = field(
        default_factory=lambda: {"from_id": [], "to_id": [], "kind": []}
    )

    def add(self, op: Op, start_ns: int, step: int, phase: str, parent: int | None = None) -> int:
        id = len(self.lines)
        end_ns = start_ns + op.length_ns(step)
        scope = f" scope={op.scope}" if op.scope and phase != "update" else ""
        above = f" parent={parent}" if parent is not None else ""
        name = op.name.replace(" ", "~")
        self.lines.append(f"0/main op:{name} {start_ns}..{end_ns} step={step}{scope}{above}")
        self.args["event_id"].append(id)
        self.args["input_shapes"].append(json.dumps(op.shapes))
        self.args["input_dtypes"].append(json.dumps([op.dtype] * len(op.shapes)))
        self.args["is_backward"].append(phase == "backward")
        self.args["flops"].append(op.flops)
        self.args["node"].append(op.node)
        self.args["bytes"].append(op.bytes)
        self.args["output_shapes"].append(json.dumps(op.shapes[:1]))
        now = start_ns
        for inner in op.inside:
            self.add(inner, now, step, phase, id)
            now += round(inner.us * 1000)
        return id


def training(
    folder: Path, *, lengths_us: dict[str, int], recorded_us: dict[str, int] | None = None,
    between_us: float = 0, tables: dict[str, dict[str, object]] | None = None,
    calls: dict[str, tuple[str, int]] | None = None, **ops: list[Op],
) -> Training:  # fmt: skip
    """Steps with phases of `lengths_us`, or `recorded_us` in the window; `forward=[...]`,
    `backward=[...]`, `update=[...]`. `tables` are further stored tables, `calls` further events of
    every step by their kind, with name and length."""
    inside_us = recorded_us or lengths_us
    lengths = [*same(lengths_us, FIRST - 1), *same(inside_us, LAST - FIRST + 1)]
    lengths += same(lengths_us, COUNT - LAST)
    drawing = _Drawing(steps(*lengths, window=(FIRST, LAST)).strip().splitlines())
    for step in range(FIRST, LAST + 1):
        phase_ns = sum(sum(parts.values()) for parts in lengths[: step - 1]) * 1000
        forward: list[int] = []
        for phase in PHASES:
            now = phase_ns
            for op in ops.get(phase, []):
                id = drawing.add(op, now, step, phase)
                if phase == "forward":
                    forward.append(id)
                if op.of is not None:
                    drawing.links["from_id"].append(forward[op.of])
                    drawing.links["to_id"].append(id)
                    drawing.links["kind"].append("forward_backward")
                now += op.length_ns(step) + round(between_us * 1000)
            phase_ns += inside_us.get(phase, 0) * 1000
    drawing.lines += _calls(lengths, calls or {})
    extra: dict[str, dict[str, object]] = {"op_args": dict(drawing.args), **(tables or {})}
    if drawing.links["from_id"]:
        extra["links"] = dict(drawing.links)
    return Training(make_run(folder, "\n".join(drawing.lines), extra))


def _calls(lengths: list[dict[str, int]], calls: dict[str, tuple[str, int]]) -> list[str]:
    """At the beginning of every step, on a track of their own."""
    lines, at = [], 0
    for number, parts in enumerate(lengths, 1):
        for kind, (name, length_us) in calls.items():
            event = f"{kind}:{name.replace(' ', '~')} {at}..{at + length_us * 1000}"
            lines.append(f"0/calls {event} step={number}")
        at += sum(parts.values()) * 1000
    return lines
