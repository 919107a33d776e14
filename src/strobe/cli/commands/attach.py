"""Record a window of a running job, by the ID of one of its processes."""

import argparse
import sys
from pathlib import Path
from typing import Any

from strobe.cli.live_run import Live, add_window_arguments, ranks_text, steps_text, window_options
from strobe.cli.opening import whole_number
from strobe.collect.on_demand.requests import ask, drop_into
from strobe.collect.start.autostart import SESSION_VARIABLE
from strobe.errors import UsageError
from strobe.messages import Message, in_language, localized, message, users_language
from strobe.model.journal import JOURNAL_GLOB


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("pid", metavar="PID", type=whole_number, help=localized("cli/attach.pid"))
    add_window_arguments(parser)
    parser.add_argument("--no-wait", action="store_true", help=localized("cli/attach.no-wait"))


def run(args: argparse.Namespace) -> int:
    live = Live(find_run(args.pid))
    if not live.is_there or not live.alive():
        raise UsageError.of("cli/attach.does-not-train", where=str(live.run), pid=args.pid)
    content = ask(steps=args.steps, start=args.start_step, by="strobe attach",
                  options=window_options(args))  # fmt: skip
    try:
        key = drop_into(live.inbox, content)
    except OSError as error:
        raise UsageError.of(
            "cli/attach.not-writable", where=str(live.run), reason=error.strerror or error
        ) from error
    answer = _requested(live) if args.no_wait else _recorded(live, key, args.timeout)
    if args.json:
        from strobe.show.text.table import to_json

        print(to_json({"ok": True, "run": str(live.run), **answer}))
    else:
        print(in_language(answer["text"], users_language()))
    return 0


def _requested(live: Live) -> dict[str, Any]:
    ranks = ranks_text(len(live.alive()))
    return {"text": message("cli/attach.requested", ranks=ranks, run=live.run)}


def _recorded(live: Live, key: str, timeout_s: int) -> dict[str, Any]:
    entry = live.wait_for(key, timeout_s, _print_progress)
    if entry is None:
        reasons = "; ".join(live.reasons())
        raise UsageError.of("cli/attach.not-recorded", where=str(live.run), hint=reasons)
    wrong = live.reasons()
    steps = steps_text(entry.start, entry.stop)
    text = message("cli/attach.recorded", steps=steps, run=live.run)
    if wrong:
        text = message("cli/attach.recorded-in-part", reasons="; ".join(wrong), run=live.run)
    return {"generation": entry.generation, "start_step": entry.start, "steps": entry.stop
            - entry.start, "reasons": wrong, "text": text}  # fmt: skip


def _print_progress(progress: Message) -> None:
    text = localized("cli/attach.recording", progress=progress)
    print(f"strobe: {text}", file=sys.stderr, flush=True)


def find_run(pid: int) -> Path:
    """The run that a process, or those below it, records to: its journal is mapped there."""
    if not Path("/proc/self/maps").exists():
        raise UsageError.of("cli/attach.needs-proc")
    if not Path(f"/proc/{pid}").exists():
        raise UsageError.of("cli/attach.no-process", pid=pid)
    family = [pid, *_below(pid)]
    runs = {run for member in family if (run := _run_of(member)) is not None}
    if len(runs) == 1:
        return runs.pop()
    if runs:
        names = ", ".join(sorted(map(str, runs)))
        raise UsageError.of("cli/attach.several", where=names, pid=pid)
    raise _why_none(pid, family)


def _why_none(pid: int, family: list[int]) -> UsageError:
    if not _may_read(pid):
        return UsageError.of("cli/attach.not-allowed", pid=pid)
    if any(SESSION_VARIABLE in _environment(member) for member in family):
        return UsageError.of("cli/attach.not-yet", pid=pid)
    return UsageError.of("cli/attach.not-recording", pid=pid)


def _run_of(pid: int) -> Path | None:
    try:
        maps = Path(f"/proc/{pid}/maps").read_text(encoding="utf-8", errors="surrogateescape")
    except OSError:
        return None
    for line in reversed(maps.splitlines()):
        path = Path(line.split(maxsplit=5)[-1])
        if path.match(f"rank_*/raw/{JOURNAL_GLOB}") and path.parents[2].is_dir():
            return path.parents[2]
    return None


def _below(pid: int) -> list[int]:
    """All descendants of a process."""
    parents: dict[int, int] = {}
    for folder in Path("/proc").iterdir():
        if not folder.name.isdecimal():
            continue
        try:
            stat = (folder / "stat").read_bytes().rpartition(b")")[2].split()
        except OSError:  # it has just ended
            continue
        parents[int(folder.name)] = int(stat[1])
    found, ahead = [], [pid]
    while ahead:
        parent = ahead.pop()
        children = [child for child, above in parents.items() if above == parent]
        found += children
        ahead += children
    return found


def _may_read(pid: int) -> bool:
    try:
        Path(f"/proc/{pid}/environ").read_bytes()
    except PermissionError:
        return False
    except OSError:
        return True
    return True


def _environment(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/environ").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
