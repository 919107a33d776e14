"""The one page a person reads first, for 80 columns."""

import re
import shlex
from collections.abc import Sequence
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, TextIO

from rich.cells import cell_len

from strobe import units
from strobe.analyse.summary import summarise
from strobe.messages import in_language, localized, message, users_language
from strobe.show.text.cells import printable
from strobe.show.text.layout import cut, pad
from strobe.show.text.metric_summary import write_metrics
from strobe.show.text.paper import Line, Paper
from strobe.show.text.rankings import write_kernels, write_modules, write_operators
from strobe.show.text.step_summary import (
    counting_notes,
    largest_part,
    listed,
    scale,
    write_steps,
)
from strobe.show.text.wrapping import wrapped

if TYPE_CHECKING:
    from strobe.reading import OpenedRun

WIDEST = 100
_INDENT = "  "
_LABEL = 11

# The parts of a device's time: letter for plain paper, colour for a terminal, its message.
_DEVICE_PARTS = {
    "compute": ("C", "blue", "summary.device-compute"),
    "communication": ("x", "red", "summary.device-communication"),
    "memory": ("m", "magenta", "summary.device-memory"),
    "idle": (".", "bright_black", "summary.device-idle"),
}
_MOST_DEVICES, _MOST_REASONS, _MOST_PROBLEMS = 8, 5, 8

_STATES = {
    "recording": "summary.state-recording",
    "finished": "summary.state-finished",
    "failed": "summary.state-failed",
    "interrupted": "summary.state-interrupted",
    "terminated": "summary.state-terminated",
    "killed": "summary.state-killed",
}

# What the operating system counts, and the message for it.
_SYSTEM_RATES = {
    "page_faults_per_s": "summary.page-faults",
    "major_page_faults_per_s": "summary.major-page-faults",
    "context_switches_per_s": "summary.context-switches",
}


def print_summary(opened: "OpenedRun", file: TextIO, width: int | None = None) -> None:
    write(summarise(opened.run), Paper(file, width))


def write(summary: dict[str, Any], paper: Paper) -> None:
    paper.width = min(paper.width, WIDEST)
    _write_headline(summary["run"], paper)
    has_metrics_only = bool(summary["metrics"]["rows"]) and not summary["recorded"]["events"]
    if not has_metrics_only:
        _write_average(summary["steps"], paper)
    write_steps(summary["steps"], paper)
    write_metrics(summary["metrics"], paper)
    _write_devices(summary["devices"], paper)
    write_kernels(summary["kernels"], paper)
    write_operators(summary, paper)
    write_modules(summary, paper)
    _write_machine(summary, paper)
    _write_recorded(summary, paper)
    _write_problems(summary["problems"], paper)


def _write_headline(run: dict[str, Any], paper: Paper) -> None:
    command = printable(_command(run)) or run["path"]
    state_style = {"finished": "green", "recording": "cyan"}.get(run["state"], "bold red")
    ending = _state(run["state"])
    if run["dur_ns"] is not None:
        duration = units.duration(run["dur_ns"])
        ending = message("summary.ended-after", state=ending, duration=duration)
    ending = _shown(ending)
    room = paper.width - cell_len(ending) - 2
    head = pad(cut(command, room), room, right=False)
    paper.write([(head, "bold"), ("  ", ""), (ending, state_style)])
    about = [f"{name} {version}".strip() for name, version in run["frameworks"].items()]
    paper.write([(cut(" · ".join([run["path"], *about]), paper.width), "dim")])
    paper.blank()


def _write_average(steps: dict[str, Any], paper: Paper) -> None:
    if not steps["count"]:
        paper.write([(localized("summary.no-steps"), "bold yellow")])
        paper.write_wrapped(localized("summary.what-a-step-needs"), "dim", _INDENT)
        paper.blank()
        return
    whole = steps["parts"][0]
    mean = units.duration(whole["mean_ns"])
    if steps["count"] == 1:
        paper.write([(localized("summary.one-step", mean=mean), "bold")])
    else:
        _write_mean_and_spread(mean, whole, paper)
    for note in counting_notes(steps):
        paper.write_wrapped(note, "dim")
    paper.write_wrapped(largest_part(steps["parts"]), "bold yellow")


def _write_mean_and_spread(mean: str, whole: dict[str, Any], paper: Paper) -> None:
    average = localized("summary.average-step", mean=mean)
    median, p95 = units.duration(whole["median_ns"]), units.duration(whole["p95_ns"])
    spread = localized("summary.spread", median=median, p95=p95)
    following = localized("summary.next-sentence", sentence=spread)
    if cell_len(average) + cell_len(following) <= paper.width:
        paper.write([(average, "bold"), (following, "")])
    else:
        paper.write([(average, "bold")])
        paper.write_wrapped(spread)


def _state(state: str) -> str:
    id = _STATES.get(state)
    return message(id) if id else printable(state)


def _shown(text: str) -> str:
    """A message in the user's language."""
    return in_language(text, users_language())


def _command(run: dict[str, Any]) -> str:
    """As one would type it: the interpreter by its name, paths from where it was started."""
    words = list(run["command"])
    if words and re.match(r"python[\d.]*$", PurePath(words[0]).name):
        words[0] = "python"
    prefix = run["directory"].rstrip("/") + "/"
    return shlex.join(word.removeprefix(prefix) for word in words)


def _write_devices(devices: list[dict[str, Any]], paper: Paper) -> None:
    if not devices:
        return
    has_steps = any(row["steps"] for row in devices)
    what = message("summary.devices-in-steps" if has_steps else "summary.devices-outside-steps")
    about = localized("summary.about", what=what)
    paper.write([(localized("summary.devices"), "bold"), (about, "dim")])
    names = _device_names(devices)
    room = paper.width - 2 - 9 - 10 * len(_DEVICE_PARTS)
    name_width = min(max(map(cell_len, names)), room)
    bar_width = room - name_width - 2
    heading = pad(localized("summary.device-time"), 9, right=True)
    heading += "".join(
        pad(localized(title), 8, right=True) + "  " for _, _, title in _DEVICE_PARTS.values()
    )
    paper.write([(_INDENT + pad("", name_width, right=False) + heading, "dim")])
    for name, row in zip(names, devices, strict=False):
        shares = {part: row[f"{part}_ns"] / max(1, row["dur_ns"]) for part in _DEVICE_PARTS}
        line: Line = [
            (_INDENT + pad(cut(name, name_width), name_width, right=False), ""),
            (pad(units.duration(row["dur_ns"]), 9, right=True), ""),
        ]
        for part, (letter, colour, _) in _DEVICE_PARTS.items():
            line.append((pad(units.percent(shares[part]), 8, right=True) + " ", ""))
            line.append(("█" if paper.is_terminal else letter, colour))
        bar = scale(shares, _DEVICE_PARTS, bar_width, paper) if bar_width >= 8 else []
        paper.write([*line, ("  ", ""), *bar])
    if len(devices) > _MOST_DEVICES:
        more = localized("summary.more-devices", count=units.count(len(devices) - _MOST_DEVICES))
        paper.write([(_INDENT + more, "dim")])
    paper.blank()


def _device_names(devices: list[dict[str, Any]]) -> list[str]:
    """Of the devices that are shown; with several ranks, each with its rank."""
    shown = devices[:_MOST_DEVICES]
    if len({row["rank"] for row in devices}) == 1:
        return [printable(row["device"]) for row in shown]
    return [
        printable(localized("summary.device-of-rank", rank=row["rank"], device=row["device"]))
        for row in shown
    ]


def _write_machine(summary: dict[str, Any], paper: Paper) -> None:
    machine, gc = summary["machine"], summary["gc"]
    lines = []
    if machine["process_cores"] is not None:
        lines.append((message("summary.cpu"), _cores(machine)))
    if machine["rss_max_bytes"] is not None:
        peak, last = units.size(machine["rss_max_bytes"]), units.size(machine["rss_last_bytes"])
        lines.append((message("summary.memory"),
                      message("summary.resident", peak=peak, last=last)))  # fmt: skip
    rates = [
        message(id, count=units.count(round(machine[key])))
        for key, id in _SYSTEM_RATES.items()
        if machine[key]
    ]
    if rates:
        lines.append((message("summary.system"), listed(rates)))
    if gc["pauses"]:
        id = "summary.gc-pause" if gc["pauses"] == 1 else "summary.gc-pauses"
        total, longest = units.duration(gc["total_ns"]), units.duration(gc["longest_ns"])
        pauses = message(id, count=units.count(gc["pauses"]), total=total, longest=longest)
        lines.append((message("summary.gc"), pauses))
    if lines:
        paper.write([(localized("summary.machine"), "bold")])
        _write_pairs(lines, paper)


def _cores(machine: dict[str, Any]) -> str:
    cores, total = f"{machine['process_cores']:.2f}", machine["core_count"]
    if machine["machine_cores"] is None:
        return message("summary.cores", cores=cores)
    busy = f"{machine['machine_cores']:.2f}"
    if not total:
        return message("summary.cores-and-busy", cores=cores, busy=busy)
    return message("summary.cores-and-busy-of", cores=cores, busy=busy, total=units.count(total))


def _write_recorded(summary: dict[str, Any], paper: Paper) -> None:
    recorded, run = summary["recorded"], summary["run"]
    lines = [
        (message("summary.ranks"), _ranks(recorded["ranks"], run["world_size"])),
        (message("summary.steps"), _steps_recorded(recorded, run)),
        (message("summary.events"), _number(recorded["events"])),
    ]
    if cost := _cost(recorded["cost"]):
        lines.append((message("summary.overhead"), cost))
    for reason in recorded["reasons"][-_MOST_REASONS:]:
        lines.append((message("summary.window"), printable(reason)))
    lines.append((message("summary.ended"), _ended(run)))
    different = [
        message("summary.rank-state", rank=rank["rank"], state=_state(rank["state"]))
        for rank in run["ranks"]
        if rank["state"] != run["state"]
    ]
    if different:
        lines.append((message("summary.except"), listed(different)))
    paper.write([(localized("summary.recorded"), "bold")])
    _write_pairs(lines, paper)


def _number(count: int) -> str:
    return message("summary.number", count=units.count(count))


def _ranks(count: int, world_size: int | None) -> str:
    if not world_size:
        return _number(count)
    return message("summary.ranks-of", count=units.count(count), total=units.count(world_size))


def _cost(cost: dict[str, Any]) -> str:
    """What recording cost this training; nothing where a trace was imported."""
    spent_ns = cost["recorder_ns"] + cost["slowed_ns"]
    if not spent_ns or not cost["steps_ns"]:
        return ""
    duration, share = units.duration(spent_ns), units.percent(spent_ns / cost["steps_ns"])
    if not cost["writing_cpu_ns"]:
        return message("summary.cost", duration=duration, share=share)
    writing = units.duration(cost["writing_cpu_ns"])
    return message("summary.cost-and-writing", duration=duration, share=share, writing=writing)


def _steps_recorded(recorded: dict[str, Any], run: dict[str, Any]) -> str:
    steps = _number(recorded["steps"])
    if recorded["ranks"] > 1:
        steps = message("summary.steps-of-all-ranks", count=units.count(recorded["steps"]))
    if recorded["steps_in_full"]:
        return _steps_in_full(steps, recorded)
    if not recorded["operators"]:
        return message("summary.steps-without-operators", steps=steps)
    if run["recorded_by"] != "strobe import":
        return message("summary.no-steps-in-full", steps=steps)
    return steps


def _steps_in_full(steps: str, recorded: dict[str, Any]) -> str:
    count, windows = units.count(recorded["steps_in_full"]), recorded["windows"]
    if not windows:
        return message("summary.steps-in-full", steps=steps, count=count)
    if windows == 1:
        return message("summary.steps-in-full-in-one-window", steps=steps, count=count)
    return message("summary.steps-in-full-in-windows", steps=steps, count=count,
                   windows=units.count(windows))  # fmt: skip


def _ended(run: dict[str, Any]) -> str:
    how, code, signal = printable(run["state_means"]), run["exit_code"], run["signal"]
    if code and signal:
        return message("summary.exit-code-and-signal", how=how, code=code, signal=signal)
    if code:
        return message("summary.exit-code", how=how, code=code)
    return message("summary.signal", how=how, signal=signal) if signal else how


def _write_problems(problems: list[dict[str, Any]], paper: Paper) -> None:
    if not problems:
        return
    paper.write([(localized("summary.problems"), "bold yellow")])
    for row in problems[:_MOST_PROBLEMS]:
        paper.write_wrapped(_shown(_problem(row)), "yellow", _INDENT)
    if len(problems) > _MOST_PROBLEMS:
        count = units.count(len(problems) - _MOST_PROBLEMS)
        paper.write([(_INDENT + localized("summary.more-problems", count=count), "dim")])
    paper.blank()


def _problem(row: dict[str, Any]) -> str:
    what, source = printable(row["what"]), printable(row["source"])
    if row["count"] > 1:
        what = message("summary.problem-times", what=what, count=units.count(row["count"]))
    if row["rank"] is None:
        return message("summary.problem", what=what, source=source)
    return message("summary.problem-of-rank", what=what, rank=row["rank"], source=source)


def _write_pairs(pairs: Sequence[tuple[str, str]], paper: Paper) -> None:
    """Labels and values; a long value goes on in the next line."""
    for label, value in pairs:
        lines = wrapped(_shown(value), paper.width - len(_INDENT) - _LABEL) or [""]
        for number, line in enumerate(lines):
            head = "" if number else _shown(label)
            paper.write([(_INDENT + pad(head, _LABEL, right=False), "dim"), (line, "")])
    paper.blank()
