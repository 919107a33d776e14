"""Which columns of a table fit a width: the important ones whole, not all of them mangled."""

from dataclasses import dataclass

from rich.cells import cell_len

from strobe.model.schema import Table

GAP = "  "
# Text columns may be cut down to this before another column is dropped.
_SHORTEST_TEXT = 18
_SHORTEST = {"name": 24, "before": 22, "after": 22}
_LONGEST_TEXT = 60

# Columns from most to least important; those of a table that are not named come last, in order.
IMPORTANCE: dict[str, tuple[str, ...]] = {
    "communication": (
        "operation", "size_bytes", "calls", "total_ns", "exposed_ns", "bus_bytes_per_s", "rank",
        "wait_ns", "group", "fastest_bus_bytes_per_s", "mean_ns", "skew_ns", "group_size", "device",
        "share", "dtype", "min_ns", "max_ns", "algorithm_bytes_per_s",
    ),
    "copies": (
        "direction", "host_memory", "calls", "bytes", "total_ns", "bytes_per_s", "kind", "rank",
        "device", "exposed_ns", "mean_bytes", "mean_ns",
    ),
    "counter-statistics": ("name", "mean", "max", "last", "min", "p95"),
    "device-time": (
        "device", "step", "dur_ns", "compute_ns", "communication_ns", "memory_ns", "idle_ns",
        "rank", "idle_share", "compute_share", "ts_ns",
    ),
    "events": ("name", "ts_ns", "dur_ns", "kind", "step", "id", "scope", "track_id", "parent_id"),
    "gaps": ("dur_ns", "step", "phase", "before", "after", "python", "ts_ns", "scope_after"),
    "idle": (
        "device", "stream", "idle_ns", "idle_share", "host_wait_ns", "kernel_wait_ns", "other_ns",
        "rank", "dur_ns", "busy_ns", "longest_ns", "gaps", "host_wait_share",
    ),
    "kernels": (
        "name", "total_ns", "share", "calls", "operator", "mean_ns", "rank", "device", "max_ns",
        "kind", "min_ns", "scope", "cumulative_share",
    ),
    "launch-queue-statistics": (
        "device", "stream", "mean_length", "max_length", "empty_share", "launches", "rank",
    ),
    "launches": (
        "name", "calls", "delay_mean_ns", "mean_ns", "launch_mean_ns", "short_calls",
        "mean_length", "rank", "launch", "delay_max_ns", "device", "total_ns", "launch_ns",
    ),
    "memory": ("device", "peak_bytes", "left_bytes", "allocations", "peak_ts_ns"),
    "modules": (
        "scope", "device_ns", "operators_ns", "share", "class", "calls", "device_own_ns",
        "forward_operators_ns", "backward_operators_ns", "forward_ns", "forward_own_ns",
        "backward_own_ns", "forward_exclusive_ns", "rank", "depth",
    ),
    "operator-types": ("name", "device_ns", "self_ns", "share", "calls", "total_ns", "mean_ns",
                       "cumulative_share", "flops", "rank"),
    "operators": (
        "name", "device_ns", "self_ns", "share", "calls", "scope", "direction", "total_ns",
        "mean_ns", "input_shapes", "flops_per_s", "cumulative_share", "bytes_per_s", "max_ns",
        "min_ns", "input_dtypes", "forward_name",
    ),
    "steps": (
        "step", "dur_ns", "gap_ns", "forward_ns", "backward_ns", "update_ns", "rest_ns",
        "all_reduce_ns", "is_outlier", "data_ns", "rank", "is_recorded", "ts_ns", "recorder_ns",
    ),
    "step-statistics": ("part", "mean_ns", "median_ns", "p95_ns", "share", "max_ns", "min_ns"),
    "threads": ("thread", "busy_ns", "share", "operators", "device", "rank"),
}  # fmt: skip


@dataclass(frozen=True)
class Shown:
    """A column that made it, and how wide it is."""

    index: int
    width: int


def fit(
    table: Table, header: list[str], cells: list[list[str]], width: int, wanted: list[int]
) -> list[Shown]:
    """Columns in declared order whose widths, with gaps, fit; `wanted` comes by importance."""
    natural = [
        max([cell_len(header[i]), *(cell_len(row[i]) for row in cells)]) for i in range(len(header))
    ]
    is_text = [column.type == "str" for column in table.columns]
    least = [
        max(cell_len(header[i]), min(natural[i], _SHORTEST.get(column.name, _SHORTEST_TEXT)))
        if is_text[i]
        else natural[i]
        for i, column in enumerate(table.columns)
    ]
    chosen: list[int] = []
    left = width + len(GAP)
    for index in wanted:
        needed = least[index] + len(GAP)
        if not chosen or needed <= left:
            chosen.append(index)
            left -= needed
    widths = {index: min(least[index], width) for index in chosen}
    _widen_texts(widths, natural, [i for i in chosen if is_text[i]], left)
    return [Shown(index, widths[index]) for index in sorted(chosen)]


def cut(text: str, width: int, tail_ratio: float = 0.5) -> str:
    """Shortened in its middle: both ends of a name tell most."""
    if cell_len(text) <= width:
        return text
    if width <= 1:
        return "…"[:width]
    tail_width = int((width - 1) * tail_ratio)
    tail = ""
    for character in reversed(text):
        if cell_len(character + tail) > tail_width:
            break
        tail = character + tail
    head = ""
    for character in text:
        if cell_len(head + character) > width - 1 - cell_len(tail):
            break
        head += character
    return f"{head}…{tail}"


def pad(text: str, width: int, right: bool) -> str:
    space = " " * max(0, width - cell_len(text))
    return space + text if right else text + space


def by_importance(table: Table, cells: list[list[str]], hide: frozenset[str]) -> list[int]:
    """Column numbers, most important first; those with nothing in them are left out."""
    names = list(table.column_names)
    first = [name for name in IMPORTANCE.get(table.name, ()) if name in names]
    ordered = [*first, *(name for name in names if name not in first)]
    return [
        names.index(name)
        for name in ordered
        if name not in hide and any(row[names.index(name)] for row in cells)
    ]


def wrapped(title: str, width: int) -> list[str]:
    """The words of a heading on as few lines as a column of this width allows."""
    lines: list[str] = []
    for word in title.split("_"):
        if lines and cell_len(lines[-1]) + 1 + cell_len(word) <= width:
            lines[-1] += f"_{word}"
        else:
            lines.append(word)
    return lines


def _widen_texts(widths: dict[int, int], natural: list[int], texts: list[int], left: int) -> None:
    """Give the space left over to the text columns that want it, a cell at a time, evenly."""
    while left > 0:
        wanting = [i for i in texts if widths[i] < min(natural[i], _LONGEST_TEXT)]
        if not wanting:
            return
        for index in wanting[:left]:
            widths[index] += 1
            left -= 1
