"""Record a window in a training that already runs, by the number of its process.

  strobe attach PID [--steps 5]

The training must have been started with Strobe: strobe run --light train.py, or strobe.Profiler.
PID may be any process of the job: a rank, torchrun, strobe run itself. All ranks of the job record
the same steps, into the run that they record to.
"""

import argparse
import sys
from pathlib import Path
from typing import Any

from strobe.cli.live_run import Live, add_window_arguments, ranks_text, steps_text, window_options
from strobe.cli.opening import whole_number
from strobe.collect.on_demand.requests import ask, drop_into
from strobe.collect.start.autostart import SESSION_VARIABLE
from strobe.errors import UsageError
from strobe.model.journal import JOURNAL_GLOB

_HOW = "start the training with Strobe: strobe run --light train.py"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("pid", metavar="PID", type=whole_number, help="a process of the training")
    add_window_arguments(parser)
    parser.add_argument("--no-wait", action="store_true", help="ask, and return at once")


def run(args: argparse.Namespace) -> int:
    live = Live(find_run(args.pid))
    if not live.is_there or not live.alive():
        raise UsageError(f"process {args.pid} does not train now", where=str(live.run),
                         hint="its ranks have ended, or stopped recording")  # fmt: skip
    content = ask(steps=args.steps, start=args.start_step, by="strobe attach",
                  options=window_options(args))  # fmt: skip
    try:
        key = drop_into(live.inbox, content)
    except OSError as error:
        what = f"the run cannot be written to: {error.strerror or error}"
        raise UsageError(
            what, where=str(live.run), hint="the user who trains can attach"
        ) from error
    told = _asked(live) if args.no_wait else _recorded(live, key, args.timeout)
    if args.json:
        from strobe.show.text.table import to_json

        print(to_json({"ok": True, "run": str(live.run), **told}))
    else:
        print(told["text"])
    return 0


def _asked(live: Live) -> dict[str, Any]:
    text = f"asked {ranks_text(len(live.alive()))}; strobe show {live.run}, when it is recorded"
    return {"text": text}


def _recorded(live: Live, key: str, timeout_s: int) -> dict[str, Any]:
    entry = live.wait_for(key, timeout_s, _tell)
    if entry is None:
        why = "; ".join(live.reasons())
        raise UsageError("the window was not recorded", where=str(live.run),
                         hint=why or "the training ended, or makes no steps now")  # fmt: skip
    wrong = live.reasons()
    text = f"recorded steps {steps_text(entry.start, entry.stop)}; see: strobe show {live.run}"
    if wrong:
        text = f"not recorded on every rank: {'; '.join(wrong)}; see: strobe show {live.run}"
    return {"generation": entry.generation, "start_step": entry.start, "steps": entry.stop
            - entry.start, "reasons": wrong, "text": text}  # fmt: skip


def _tell(text: str) -> None:
    print(f"strobe: recording {text}", file=sys.stderr, flush=True)


def find_run(pid: int) -> Path:
    """The run that a process, or those below it, records to: its journal is mapped there."""
    if not Path("/proc/self/maps").exists():
        raise UsageError("attach needs /proc, which this system does not have",
                         hint="strobe run --dynamic DIR works here")  # fmt: skip
    if not Path(f"/proc/{pid}").exists():
        raise UsageError(f"there is no process {pid}", hint="ps aux lists them")
    family = [pid, *_below(pid)]
    runs = {run for member in family if (run := _run_of(member)) is not None}
    if len(runs) == 1:
        return runs.pop()
    if runs:
        names = ", ".join(sorted(map(str, runs)))
        raise UsageError(f"several trainings run below process {pid}", where=names,
                         hint="give the number of a process of one of them")  # fmt: skip
    raise _why_none(pid, family)


def _why_none(pid: int, family: list[int]) -> UsageError:
    if not _may_look(pid):
        return UsageError(f"process {pid} is another user's", hint="its user, or root, can attach")
    if any(SESSION_VARIABLE in _environment(member) for member in family):
        return UsageError(f"process {pid} has not begun to train", hint="try again when it has: "
                          "after the first backward pass")  # fmt: skip
    children = "" if len(family) == 1 else ", nor is a process below it"
    return UsageError(f"process {pid} is not recorded by Strobe{children}", hint=_HOW)


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


def _may_look(pid: int) -> bool:
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
