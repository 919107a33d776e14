"""The one page a person reads first, for 80 columns."""

import re
import shlex
import textwrap
from pathlib import PurePath
from typing import Any, TextIO

from strobe import units
from strobe.analyse.opened import OpenedRun
from strobe.analyse.summary import summarise
from strobe.show.text.cells import printable
from strobe.show.text.layout import cut, pad
from strobe.show.text.paper import Line, Paper
from strobe.show.text.rankings import write_kernels, write_modules, write_operators
from strobe.show.text.step_summary import largest_part, left_out_steps, scale, write_steps

WIDEST = 100


# What a device does with its time, in the same way.
_DEVICE_PARTS = {
    "compute": ("C", "blue", "compute"),
    "communication": ("x", "red", "comm."),
    "memory": ("m", "magenta", "memory"),
    "idle": (".", "bright_black", "idle"),
}
_MOST_DEVICES, _MOST_REASONS = 8, 5


def print_summary(opened: OpenedRun, file: TextIO, width: int | None = None) -> None:
    write(summarise(opened.run), Paper(file, width))


def write(summary: dict[str, Any], paper: Paper) -> None:
    paper.width = min(paper.width, WIDEST)
    _write_headline(summary, paper)
    write_steps(summary["steps"], paper)
    _write_devices(summary["devices"], paper)
    write_kernels(summary["kernels"], paper)
    write_operators(summary, paper)
    write_modules(summary, paper)
    _write_machine(summary, paper)
    _write_recorded(summary, paper)
    _write_problems(summary["problems"], paper)


def _write_headline(summary: dict[str, Any], paper: Paper) -> None:
    run, steps = summary["run"], summary["steps"]
    command = printable(_command(run)) or run["path"]
    length = f" after {units.duration(run['dur_ns'])}" if run["dur_ns"] is not None else ""
    state_style = {"finished": "green", "recording": "cyan"}.get(run["state"], "bold red")
    ending = f"{run['state']}{length}"
    room = paper.width - len(ending) - 2
    head = pad(cut(command, room), room, right=False)
    paper.write([(head, "bold"), ("  ", ""), (ending, state_style)])
    about = [f"{name} {version}".strip() for name, version in run["frameworks"].items()]
    paper.write([(cut(" · ".join([run["path"], *about]), paper.width), "dim")])
    paper.blank()
    if not steps["count"]:
        paper.write([("no training steps were found", "bold yellow")])
        note = "a step needs a forward, a backward and an update; strobe.step() marks one by hand"
        paper.write_wrapped(note, "dim", "  ")
        paper.blank()
        return
    whole = steps["parts"][0]
    line = f"One step takes {units.duration(whole['mean_ns'])} on average"
    more = f"median {units.duration(whole['median_ns'])}"
    more += f", 95% below {units.duration(whole['p95_ns'])}"
    if steps["count"] == 1:
        paper.write([(f"One step was measured: {units.duration(whole['mean_ns'])}", "bold")])
    elif len(line) + len(more) + 2 <= paper.width:
        paper.write([(line, "bold"), (f"; {more}", "")])
    else:
        paper.write([(line, "bold")])
        paper.write([(more, "")])
    if left_out := left_out_steps(steps):
        paper.write_wrapped(left_out, "dim", "")
    paper.write_wrapped(largest_part(steps["parts"]), "bold yellow", "")


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
    what = "time in steps" if any(row["steps"] for row in devices) else "first to last kernel"
    paper.write([("Devices", "bold"), (f", {what}", "dim")])
    is_one_rank = len({row["rank"] for row in devices}) == 1
    names = [row["device"] if is_one_rank else f"rank {row['rank']} {row['device']}"
             for row in devices[:_MOST_DEVICES]]  # fmt: skip
    room = paper.width - 2 - 9 - 10 * len(_DEVICE_PARTS)
    name_width = min(max(len(name) for name in names), room)
    bar_width = room - name_width - 2
    heading = "".join(pad(title, 8, right=True) + "  " for _, _, title in _DEVICE_PARTS.values())
    paper.write([(f"  {pad('', name_width, right=False)}   length{heading}", "dim")])
    for name, row in zip(names, devices, strict=False):
        shares = {part: row[f"{part}_ns"] / max(1, row["dur_ns"]) for part in _DEVICE_PARTS}
        line: Line = [
            ("  " + pad(cut(printable(name), name_width), name_width, right=False), ""),
            (pad(units.duration(row["dur_ns"]), 9, right=True), ""),
        ]
        for part, (letter, colour, _) in _DEVICE_PARTS.items():
            line.append((pad(units.percent(shares[part]), 8, right=True) + " ", ""))
            line.append(("█" if paper.is_terminal else letter, colour))
        bar = scale(shares, _DEVICE_PARTS, bar_width, paper) if bar_width >= 8 else []
        paper.write([*line, ("  ", ""), *bar])
    if len(devices) > _MOST_DEVICES:
        more = f"  and {len(devices) - _MOST_DEVICES} more: strobe show RUN device-time"
        paper.write([(more, "dim")])
    paper.blank()


def _write_machine(summary: dict[str, Any], paper: Paper) -> None:
    machine, gc = summary["machine"], summary["gc"]
    lines = []
    if machine["process_cores"] is not None:
        lines.append(("processor", _processor(machine)))
    if machine["rss_max_bytes"] is not None:
        text = f"{units.size(machine['rss_max_bytes'])} resident at most"
        last = units.size(machine["rss_last_bytes"])
        lines.append(("memory", f"{text}, {last} at the end"))
    rates = [
        f"{units.count(round(machine[key]))} {what}/s"
        for key, what in (
            ("page_faults_per_s", "page faults"),
            ("major_page_faults_per_s", "of them from disk"),
            ("context_switches_per_s", "context switches"),
        )
        if machine[key]
    ]
    if rates:
        lines.append(("kernel", ", ".join(rates)))
    if gc["pauses"]:
        text = f"{_some(gc['pauses'], 'pause')}, {units.duration(gc['total_ns'])} in all"
        lines.append(("Python GC", f"{text}, longest {units.duration(gc['longest_ns'])}"))
    if lines:
        paper.write([("Machine", "bold")])
        _write_pairs(lines, paper)


def _processor(machine: dict[str, Any]) -> str:
    text = f"{machine['process_cores']:.2f} cores by the training"
    busy, count = machine["machine_cores"], machine["core_count"]
    if busy is None:
        return text
    text += f", {busy:.2f}"
    return text + (f" of {count} busy in all" if count else " busy in all")


def _write_recorded(summary: dict[str, Any], paper: Paper) -> None:
    recorded, run = summary["recorded"], summary["run"]
    ranks = f"{recorded['ranks']}"
    if run["world_size"]:
        ranks += f" of {run['world_size']}"
    lines = [
        ("ranks", ranks),
        ("steps", _steps_recorded(recorded, run)),
        ("events", f"{recorded['events']:,}"),
    ]
    lines += _cost(recorded["cost"])
    for reason in recorded["reasons"][-_MOST_REASONS:]:
        why = textwrap.wrap(printable(reason), paper.width - 13)
        lines += [("" if number else "window", text) for number, text in enumerate(why)]
    code = f", exit code {run['exit_code']}" if run["exit_code"] else ""
    code += f", signal {run['signal']}" if run["signal"] else ""
    lines.append(("ended", f"{run['state_means']}{code}"))
    odd = [f"rank {r['rank']} {r['state']}" for r in run["ranks"] if r["state"] != run["state"]]
    if odd:
        lines.append(("but", ", ".join(odd)))
    paper.write([("Recorded", "bold")])
    _write_pairs(lines, paper)


def _cost(cost: dict[str, Any]) -> list[tuple[str, str]]:
    """What recording cost this training; nothing where a trace was imported."""
    spent_ns = cost["recorder_ns"] + cost["slowed_ns"]
    if not spent_ns or not cost["steps_ns"]:
        return []
    share = units.percent(spent_ns / cost["steps_ns"])
    text = f"{units.duration(spent_ns)} ({share} of step time)"
    if cost["writing_cpu_ns"]:
        text += f"; {units.duration(cost['writing_cpu_ns'])} of CPU time to write traces"
    return [("recording", text)]


def _steps_recorded(recorded: dict[str, Any], run: dict[str, Any]) -> str:
    text = f"{recorded['steps']:,}"
    if recorded["ranks"] > 1:
        text += " over all ranks"
    if recorded["steps_in_full"]:
        text += f", {recorded['steps_in_full']:,} of them with every operator"
        if recorded["windows"]:
            text += f" ({_some(recorded['windows'], 'window')})"
    elif not recorded["operators"]:
        text += ", without operators"
    elif run["recorded_by"] != "strobe import":
        text += ", none of them with every operator"
    return text


def _write_problems(problems: list[dict[str, Any]], paper: Paper) -> None:
    if not problems:
        return
    paper.write([("Could not be recorded or read", "bold yellow")])
    for row in problems[:8]:
        where = f"rank {row['rank']}, " if row["rank"] is not None else ""
        often = f" ({row['count']:,} times)" if row["count"] > 1 else ""
        text = f"{printable(row['what'])}{often}: {where}{printable(row['source'])}"
        paper.write_wrapped(text, "yellow", "  ")
    if len(problems) > 8:
        paper.write([(f"  and {len(problems) - 8} more: strobe show RUN problems", "dim")])
    paper.blank()


def _write_pairs(pairs: list[tuple[str, str]], paper: Paper) -> None:
    for name, value in pairs:
        paper.write([(f"  {name:<11}", "dim"), (cut(value, paper.width - 13), "")])
    paper.blank()


def _some(count: int, noun: str) -> str:
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"
