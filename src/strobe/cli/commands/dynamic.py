"""Ask a training that runs for windows of full recording, by its profiler_config.json.

  strobe run --dynamic DIR train.py       watches DIR/profiler_config.json while it trains
  strobe dynamic DIR start --steps 5      asks for 5 steps, recorded by all ranks together
  strobe dynamic DIR status               what every rank is doing, and what is wrong with the file
  strobe dynamic DIR stop                 ends the window before its time, and drops those to come

The file can be edited by hand as well: start_step and stop_step are both recorded, -1 leaves
things as they are.
"""

import argparse
import contextlib
import sys
from pathlib import Path
from typing import Any

from strobe.cli.live_run import Live, add_window_arguments, ranks_text, steps_text, window_options
from strobe.collect.on_demand import config
from strobe.collect.on_demand.channel import JOB_FILE
from strobe.collect.on_demand.config import CONFIG_FILE
from strobe.collect.on_demand.files import Unreadable, parse, read_object, read_text, replace
from strobe.collect.on_demand.requests import drop_into
from strobe.errors import StrobeError, UsageError
from strobe.model.manifest import read_manifest
from strobe.model.options import Options


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("folder", metavar="DIR", type=Path, help="folder given to --dynamic")
    parser.add_argument("action", choices=("start", "status", "stop"), help="what to do")
    add_window_arguments(parser)
    parser.add_argument(
        "--analyse", action="store_true", help="build the tables at once, while training goes on"
    )
    parser.add_argument("--wait", action="store_true", help="return when the window is recorded")


def run(args: argparse.Namespace) -> int:
    live = _live(args)
    act = {"start": _start, "status": _status, "stop": _stop}[args.action]
    told = act(args, live)
    if args.json:
        from strobe.show.text.table import to_json

        print(to_json({"ok": True, **told}))
    else:
        print(told["text"])
    return 0


def _live(args: argparse.Namespace) -> Live | None:
    """The run that uses the folder; None if none does yet."""
    if not args.folder.is_dir():
        raise UsageError(
            "there is no such folder", where=str(args.folder),
            hint=f"start a training that uses it: strobe run --dynamic {args.folder} train.py",
        )  # fmt: skip
    job = read_object(args.folder / JOB_FILE)
    if job is not None and isinstance(job.get("run"), str) and Path(job["run"]).is_dir():
        return Live(Path(job["run"]))
    return None


def _nobody(folder: Path) -> UsageError:
    return UsageError(
        "no training uses this folder", where=str(folder),
        hint=f"strobe run --dynamic {folder} train.py; or give --start-step, for one to come",
    )  # fmt: skip


def _start(args: argparse.Namespace, live: Live | None) -> dict[str, Any]:
    alive = [] if live is None else live.alive()
    if not alive and args.start_step is None:
        raise _nobody(args.folder)
    if args.steps < 1:
        raise UsageError("0 steps cannot be recorded", hint="ask for --steps 1 or more")
    start = args.start_step if args.start_step is not None or live is None else live.next_step()
    content = {
        **_first_file(live), **window_options(args), "start_step": start,
        "stop_step": start + args.steps - 1, "generation": _next_generation(args.folder, alive),
    }  # fmt: skip
    if args.analyse:
        content["analyse_mode"] = 1
    wish = config.wish(content)
    _write(args.folder, content)
    told = {"generation": content["generation"], "start_step": start,
            "stop_step": content["stop_step"], "run": str(live.run) if live else None}  # fmt: skip
    asked = f"steps {steps_text(start, start + args.steps)}, generation {content['generation']}"
    if not alive or live is None:
        return {**told, "text": f"asked for {asked}, of the training that comes"}
    if not args.wait:
        more = f"strobe dynamic {args.folder} status"
        return {**told, "text": f"asked {ranks_text(len(alive))} for {asked}; see: {more}"}
    entry = live.wait_for(wish.key, args.timeout, _tell)
    if entry is None:
        why = "; ".join(live.reasons()) or "is the training still going on?"
        raise UsageError("the window was not recorded in time", where=str(args.folder), hint=why)
    told |= {"start_step": entry.start, "stop_step": entry.stop - 1}
    text = f"recorded steps {steps_text(entry.start, entry.stop)}; strobe show {live.run}"
    return {**told, "text": text}


def _first_file(live: Live | None) -> dict[str, Any]:
    """Asks for nothing, with switches as the run was started."""
    with contextlib.suppress(StrobeError):
        if live is not None:
            return config.first_file(Options.from_stored(read_manifest(live.run).options))
    return config.first_file()


def _tell(text: str) -> None:
    print(f"strobe: {text}", file=sys.stderr, flush=True)


def _write(folder: Path, content: dict[str, Any]) -> None:
    try:
        replace(folder / CONFIG_FILE, content)
    except OSError as error:
        raise UsageError(f"the file cannot be written: {error.strerror or error}",
                         where=str(folder / CONFIG_FILE),
                         hint="whoever started the training can write it") from error  # fmt: skip


def _next_generation(folder: Path, alive: list[Any]) -> int:
    """Past that of the file, which need not be one that can be read, and of all ranks."""
    numbers = [status.generation for status in alive]
    with contextlib.suppress(Unreadable):
        numbers.append(parse(read_text(folder / CONFIG_FILE)).get("generation", 0))
    return max((number for number in numbers if isinstance(number, int)), default=0) + 1


def _stop(args: argparse.Namespace, live: Live | None) -> dict[str, Any]:
    alive = [] if live is None else live.alive()
    if not alive or live is None:
        raise _nobody(args.folder)
    _write(args.folder, {**_first_file(live),
                         "generation": _next_generation(args.folder, alive)})  # fmt: skip
    drop_into(live.inbox, {"stop": True, "by": "strobe dynamic stop"})
    text = f"asked {ranks_text(len(alive))} to end the window; those to come are dropped"
    return {"run": str(live.run), "text": text}


def _status(args: argparse.Namespace, live: Live | None) -> dict[str, Any]:
    if live is None or not live.ranks():
        raise _nobody(args.folder)
    wrong = _wrong_with_file(args.folder) or next((s.config for s in live.ranks() if s.config), "")
    rows = [live.rank_json(status) for status in live.ranks()]
    return {"run": str(live.run), "config": wrong, "ranks": rows,
            "text": "\n".join(_status_lines(args.folder, live, wrong))}  # fmt: skip


def _wrong_with_file(folder: Path) -> str:
    try:
        config.wish(parse(read_text(folder / CONFIG_FILE)))
    except Unreadable as error:
        return f"{CONFIG_FILE} {error}"
    except UsageError as error:
        return f"{CONFIG_FILE}: {error.what} ({error.hint})"
    return ""


def _status_lines(folder: Path, live: Live, wrong: str) -> list[str]:
    statuses = live.ranks()
    lines = [f"{folder}: {ranks_text(len(statuses))} of the run {live.run}", ""]
    lines.append(f"  {'rank':>4}  {'host':<12} {'pid':>8} {'step':>8}  doing")
    for status in statuses:
        lead = " (leads)" if status.is_leader and not live.is_dead(status) else ""
        lines.append(f"  {status.rank:>4}  {status.host[:12]:<12} {status.pid:>8} "
                     f"{status.step:>8}  {live.state(status)}{lead}")  # fmt: skip
        if status.reason:
            lines.append(f"  {'':>4}  {status.reason}")
    queued = max((status.queued for status in statuses if not live.is_dead(status)), default=0)
    if queued:
        lines += ["", f"{queued} asked for and not done yet"]
    lines += ["", wrong or f"{CONFIG_FILE}: in order"]
    return lines
