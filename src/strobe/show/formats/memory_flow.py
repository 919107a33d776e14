"""Memory over time as a picture: each block is a rectangle, from when it was allocated to when it
was freed, at its address. A chart for each device of each rank; what a block is appears on hover.
"""

import html
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from strobe import units
from strobe.analyse.tables.memory import memory_blocks
from strobe.analyse.tables.steps import steps
from strobe.errors import MissingData
from strobe.show.atomic import whole_file
from strobe.store.run import Run

NAME = "memory_flow.svg"
DOC = "blocks of memory over time and address, as a picture"

MOST_CHARTS = 8
MOST_BLOCKS = 12_000  # of all charts: about 3 MB
MOST_COLOURS = 9
MOST_STEP_LABELS = 24

_WIDTH, _HEIGHT = 1280, 420  # of a chart's plot
_LEFT, _TOP, _RIGHT, _BOTTOM = 84, 64, 24, 132
_CHART = _TOP + _HEIGHT + _BOTTOM
_SMALLEST = 0.6  # of a side of a rectangle, in pixels: what is smaller cannot be seen
_LARGE = 3.0  # from here on a rectangle has a border
_LEGEND_COLUMNS = 3
_LEGEND_TEXT = 52  # characters

# Okabe and Ito's, which people who see few colours can tell apart; grey is for the rest.
_COLOURS = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#8c6d31", "#7b4fa3",
            "#b5bd00")  # fmt: skip
_OTHERS = "#9aa0a6"
_NO_MODULE = "outside of modules"

_STYLE = """
text { font: 12px system-ui, "DejaVu Sans", sans-serif; fill: #202124 }
.title { font-size: 15px; font-weight: 600 }
.note { fill: #5f6368 }
.grid { stroke: #e0e3e7; stroke-width: 1 }
.step { stroke: #80868b; stroke-width: 1; stroke-dasharray: 2 3 }
.frame { fill: none; stroke: #5f6368; stroke-width: 1 }
.large { stroke: #ffffff; stroke-width: 0.4 }
.block:hover { stroke: #000000; stroke-width: 1.2 }
"""


class Block(NamedTuple):
    ts_ns: int
    end_ns: int
    is_freed: bool
    bytes: int
    address: int
    offset: int
    step: int | None
    name: str | None
    scope: str | None
    area_share: float


def write(run: Run, path: Path) -> None:
    charts = _charts(run)
    if not charts:
        raise MissingData.of("errors/run.no-memory", where=str(run.path))
    with whole_file(path) as out:
        for line in _picture(run, charts):
            out.write(f"{line}\n")


def _charts(run: Run) -> dict[tuple[int, str], list[Block]]:
    """The blocks of each device of each rank."""
    columns = ("rank, device, ts_ns, end_ns, is_freed, bytes, address, offset_bytes, step, name, "
               "scope, coalesce(area_share, 0)")  # fmt: skip
    charts: dict[tuple[int, str], list[Block]] = defaultdict(list)
    for rank, device, *block in memory_blocks.run(run).project(columns).fetchall():
        charts[rank, device].append(Block(*block))
    return charts


def _picture(run: Run, charts: dict[tuple[int, str], list[Block]]) -> Iterator[str]:
    drawn = sorted(charts)[:MOST_CHARTS]
    left_out = len(charts) - len(drawn)
    width, height = _LEFT + _WIDTH + _RIGHT, _CHART * len(drawn) + (24 if left_out else 0)
    name = html.escape(run.path.resolve().name)
    yield (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
           f'width="{width}" height="{height}">')  # fmt: skip
    yield f"<title>Memory of {name} over time and address</title>"
    yield f"<style>{_STYLE}</style>"
    yield f'<rect width="{width}" height="{height}" fill="#ffffff"/>'
    counts = _counts(run)
    for number, (rank, device) in enumerate(drawn):
        blocks = _largest(charts[rank, device], MOST_BLOCKS // len(drawn))
        title = f"{name}: memory of {html.escape(device)}"
        title += f", rank {rank}" if len({rank for rank, _ in charts}) > 1 else ""
        total = counts.get((rank, device), len(blocks))
        yield f'<g transform="translate(0 {number * _CHART})">'
        yield from _Chart(blocks, _steps(run, rank)).lines(title, total)
        yield "</g>"
    if left_out:
        yield _text(_LEFT, height - 10, f"{left_out} more devices or ranks are not drawn.", "note")
    yield "</svg>"


def _largest(blocks: list[Block], most: int) -> list[Block]:
    return sorted(blocks, key=lambda block: (-block.area_share, block.ts_ns))[:most]


def _counts(run: Run) -> dict[tuple[int, str], int]:
    query = "SELECT rank, device, count(*) FROM allocations GROUP BY ALL"
    return {(rank, device): count for rank, device, count in run.sql(query).fetchall()}


def _steps(run: Run, rank: int) -> list[tuple[int, int]]:
    of_rank = steps.run(run).filter(f"rank = {rank}")
    return of_rank.project("step, ts_ns").order("ts_ns").fetchall()


class _Chart:
    """One plot with its axes and legend."""

    def __init__(self, blocks: Sequence[Block], begun: list[tuple[int, int]]) -> None:
        self._blocks = blocks
        self._begin = min(block.ts_ns for block in blocks)
        self._end = max(max(block.end_ns for block in blocks), self._begin + 1)
        self._bytes = max(max(block.offset + block.bytes for block in blocks), 1)
        self._steps = [step for step in begun if self._begin <= step[1] <= self._end]
        self._colours = _colours(blocks)

    def lines(self, title: str, total: int) -> Iterator[str]:
        yield _text(_LEFT, 24, title, "title")
        yield _text(_LEFT, 44, self._what_is_drawn(total), "note")
        yield f'<g transform="translate({_LEFT} {_TOP})">'
        yield from self._axes()
        for block in sorted(self._blocks, key=lambda block: -block.bytes):
            yield self._rectangle(block)
        yield from self._step_lines()
        yield f'<rect class="frame" width="{_WIDTH}" height="{_HEIGHT}"/>'
        yield from self._legend()
        yield "</g>"

    def _what_is_drawn(self, total: int) -> str:
        count = len(self._blocks)
        if count >= total:
            return f"{count:,} blocks. Addresses that no block used are left out."
        share = units.percent(sum(block.area_share for block in self._blocks))
        return (f"The {count:,} largest and longest of {total:,} blocks, {share} of memory times "
                "time. Addresses that none of them used are left out.")  # fmt: skip

    def _x(self, ns: int) -> float:
        return (ns - self._begin) / (self._end - self._begin) * _WIDTH

    def _y(self, offset: float) -> float:
        return _HEIGHT - offset / self._bytes * _HEIGHT

    def _axes(self) -> Iterator[str]:
        for at in _ticks(self._bytes, 1024):
            y = self._y(at)
            yield f'<line class="grid" x2="{_WIDTH}" y1="{y:.1f}" y2="{y:.1f}"/>'
            yield _text(-8, y + 4, _short(units.size(at)), anchor="end")
        for at in _ticks(self._end - self._begin, 1000):
            x = self._x(self._begin + int(at))
            yield f'<line class="grid" x1="{x:.1f}" x2="{x:.1f}" y2="{_HEIGHT}"/>'
            yield _text(x, _HEIGHT + 18, _short(units.duration(at)), anchor="middle")
        about = f"time (0 is {units.moment(self._begin)} after the run began)"
        yield _text(_WIDTH / 2, _HEIGHT + 38, about, "note", "middle")
        yield (f'<text class="note" transform="translate({16 - _LEFT} {_HEIGHT / 2}) rotate(-90)" '
               'text-anchor="middle">address</text>')  # fmt: skip

    def _rectangle(self, block: Block) -> str:
        x, y = self._x(block.ts_ns), self._y(block.offset + block.bytes)
        width = max(self._x(block.end_ns) - x, _SMALLEST)
        height = max(self._y(block.offset) - y, _SMALLEST)
        fill = self._colours.get(_group(block), _OTHERS)
        is_large = width > _LARGE and height > _LARGE
        style = "block large" if is_large else "block"
        return (f'<rect class="{style}" x="{x:.2f}" y="{y:.2f}" width="{width:.2f}" '
                f'height="{height:.2f}" fill="{fill}"><title>{_tooltip(block)}</title></rect>'
                )  # fmt: skip

    def _step_lines(self) -> Iterator[str]:
        every = max(1, -(-len(self._steps) // MOST_STEP_LABELS))
        for number, (step, ts_ns) in enumerate(self._steps):
            if number % every == 0:
                x = self._x(ts_ns)
                yield f'<line class="step" x1="{x:.1f}" x2="{x:.1f}" y2="{_HEIGHT}"/>'
                yield _text(x + 3, -4, f"step {step}" if number == 0 else str(step), "note")

    def _legend(self) -> Iterator[str]:
        entries = [*self._colours.items()]
        if any(_group(block) not in self._colours for block in self._blocks):
            entries.append(("others", _OTHERS))
        for number, (name, colour) in enumerate(entries):
            row, column = divmod(number, _LEGEND_COLUMNS)
            x, y = column * (_WIDTH / _LEGEND_COLUMNS), _HEIGHT + 58 + row * 20
            yield f'<rect x="{x:.0f}" y="{y - 10}" width="12" height="12" fill="{colour}"/>'
            yield _text(x + 18, y, html.escape(_cut(name)))


def _group(block: Block) -> str:
    """What its colour stands for: its module, or else its operator."""
    if block.scope:
        return block.scope
    return f"{block.name} ({_NO_MODULE})" if block.name else "unknown"


def _colours(blocks: Sequence[Block]) -> dict[str, str]:
    """Of the groups that take up most memory for longest."""
    areas: dict[str, float] = defaultdict(float)
    for block in blocks:
        areas[_group(block)] += block.bytes * (block.end_ns - block.ts_ns)
    largest = sorted(areas, key=lambda name: (-areas[name], name))[:MOST_COLOURS]
    return dict(zip(largest, _COLOURS, strict=False))


def _tooltip(block: Block) -> str:
    lasted = units.duration(block.end_ns - block.ts_ns)
    lines = [
        f"{units.size(block.bytes)}, {lasted}" + ("" if block.is_freed else ", not seen freed"),
        f"operator: {block.name}" if block.name else "",
        f"module: {block.scope}" if block.scope else "",
        f"step: {block.step}" if block.step is not None else "",
        f"allocated at {units.moment(block.ts_ns)}, address {block.address:#x}",
    ]
    return html.escape("\n".join(filter(None, lines)))


def _ticks(length: float, base: int) -> list[float]:
    """Four to ten round values from 0 to a length; of bytes, round by powers of 1024."""
    unit = 1.0
    while length / unit >= base:
        unit *= base
    step = next(
        (step for power in range(4) for digit in (1, 2, 5)
         if length / unit / (step := digit * 10.0**power / 10) <= 8), unit
    )  # fmt: skip
    return [number * step * unit for number in range(int(length / unit / step) + 1)]


def _text(x: float, y: float, text: str, style: str = "", anchor: str = "") -> str:
    """`text` is escaped already."""
    more = (f' class="{style}"' if style else "") + (f' text-anchor="{anchor}"' if anchor else "")
    return f'<text x="{x:.1f}" y="{y:.1f}"{more}>{text}</text>'


def _short(text: str) -> str:
    """5 MiB instead of 5.00 MiB."""
    return re.sub(r"\.0+ ", " ", text)


def _cut(name: str) -> str:
    return name if len(name) <= _LEGEND_TEXT else f"…{name[1 - _LEGEND_TEXT :]}"
