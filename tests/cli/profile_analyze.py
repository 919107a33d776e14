"""What megengine.tools.profile_analyze printed, read back from its tables."""

import re
from pathlib import Path
from typing import NamedTuple

import pytest

DATA = Path(__file__).resolve().parents[3] / "shared" / "data" / "megengine"
_PREFIXES = {"": 1, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15}
_BINARY = {"byte": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40}
# The commands were run beside these files under other names.
_FILES = {
    "../run/profiling.json": "real/get_profile.train.json",
    "../run/o_ct/28531.chrome_timeline.json": "real/chrome_timeline.sample_rate1.json",
}


class Command(NamedTuple):
    number: str
    words: list[str]
    code: int

    @property
    def output(self) -> str:
        return (DATA / "out" / f"{self.number}.stdout").read_text(encoding="utf-8")


class Row(NamedTuple):
    """Numbers as printed: (value, half of the last digit); None for N/A."""

    key: str  # the id, or what a group has in common
    info: list[str]
    time_s: str
    percent: float
    cumulative_s: str
    cumulative_percent: float
    numbers: dict[str, tuple[float, float] | None]
    shapes: tuple[str, str]


def commands() -> list[Command]:
    if not DATA.exists():
        return []
    text = (DATA / "COMMANDS.txt").read_text(encoding="utf-8")
    found = re.findall(r"\[(\d+)\] \S+ -m \S+ (.*)\n\s+rc=(\d+)", text)
    return [Command(number, _words(words), int(code)) for number, words, code in found]


def _words(line: str) -> list[str]:
    words = [_FILES.get(word, word) for word in line.split()]
    if words[0].endswith(".json"):
        words[0] = str(DATA / words[0])
    return words


def need_data() -> None:
    if not DATA.exists():
        pytest.skip("MegEngine's shared data absent")


def totals(output: str) -> dict[str, str]:
    """total device time, total host time, copy time, copy wait time."""
    return dict(
        re.findall(r"^(?:\| )?((?:total|copy)[\w ]*? time) +(?:\| +)?(\S[^|\n]*?)(?: *\|)?$",
                   output, re.MULTILINE)
    )  # fmt: skip


def tables(output: str) -> dict[str, list[Row]]:
    """By clock: device, host."""
    found: dict[str, list[Row]] = {}
    lines: list[str] = []
    clock = ""
    for line in output.splitlines():
        if (title := re.match(r"│ (device|host) self time", line)) is not None:
            clock, lines = title.group(1), []
            found[clock] = []
        elif line.startswith("│"):
            lines.append(line)
        elif line.startswith(("├", "╘")) and lines:
            found[clock].append(_row(lines))
            lines = []
    if "|   # |" in output:
        found["device"] = [_wiki_row(line) for line in re.findall(r"^\| +\d+ \|.*", output, re.M)]
    return found


def _row(lines: list[str]) -> Row:
    columns = [list(cell) for cell in zip(*(_cells(line) for line in lines), strict=True)]
    time, cumulative, info, work, rate, memory, bandwidth, *shapes = (
        [text for text in column if text] for column in columns
    )
    name = "".join(part.removeprefix("-  ") for part in info[:-2])
    # Of a group: what it has in common, how many, N/A.
    key = info[0] if info[-1] == "N/A" else info[-1]
    return Row(
        key, [name, *info[-2:]], time[1], float(time[2][:-1]), cumulative[0],
        float(cumulative[1][:-1]),
        {
            "computation_flops": _decimal(*work, "FLO"), "flops_per_s": _decimal(*rate, "FLOPS"),
            "memory_bytes": _binary(*memory), "bytes_per_s": _binary(*bandwidth),
        },
        (",".join(shapes[0]), ",".join(shapes[1])),
    )  # fmt: skip


def _wiki_row(line: str) -> Row:
    cells = [cell.strip() for cell in line.strip("|").split("|")]
    numbers = {
        name: None if cells[place] == "N/A" else (float(cells[place]) * unit, 0.05 * unit)
        for name, place, unit in (
            ("computation_flops", 9, 1e6), ("flops_per_s", 10, 1e6), ("memory_bytes", 12, 2**20),
            ("bytes_per_s", 13, 2**20),
        )
    }  # fmt: skip
    return Row(cells[8], cells[6:9], cells[1], float(cells[2][:-1]), cells[4],
               100 * float(cells[5]), numbers,
               (cells[15].replace(" ", ""), cells[16].replace(" ", "")))  # fmt: skip


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip("│").split("│")]


def _decimal(number: str, unit: str, plain: str) -> tuple[float, float] | None:
    scale = _PREFIXES[unit.removesuffix(plain)]
    return None if number == "N/A" else (float(number) * scale, 0.005 * scale)


def _binary(number: str, unit: str) -> tuple[float, float] | None:
    scale = _BINARY[unit.removesuffix("/s")]
    return None if number == "N/A" else (float(number) * scale, 0.005 * scale)
