"""Control the profiling of a running job through its profiler_config.json, or show its status."""

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
from strobe.messages import Message, in_language, localized, message, users_language
from strobe.model.manifest import read_manifest
from strobe.model.options import Options


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("folder", metavar="DIR", type=Path, help=localized("cli/dynamic.folder"))
    parser.add_argument("action", metavar="ACTION", choices=("start", "status", "stop"),
                        help=localized("cli/dynamic.action"))  # fmt: skip
    add_window_arguments(parser)
    parser.add_argument("--analyse", action="store_true", help=localized("cli/dynamic.analyse"))
    parser.add_argument("--wait", action="store_true", help=localized("cli/dynamic.wait"))


def run(args: argparse.Namespace) -> int:
    live = _live(args)
    act = {"start": _start, "status": _status, "stop": _stop}[args.action]
    answer = act(args, live)
    if args.json:
        from strobe.show.text.table import to_json

        print(to_json({"ok": True, **answer}))
    else:
        print(in_language(answer["text"], users_language()))
    return 0


def _live(args: argparse.Namespace) -> Live | None:
    """The run that uses the folder; None if none does yet."""
    if not args.folder.is_dir():
        raise UsageError.of("cli/dynamic.no-folder", where=str(args.folder), folder=args.folder)
    job = read_object(args.folder / JOB_FILE)
    if job is not None and isinstance(job.get("run"), str) and Path(job["run"]).is_dir():
        return Live(Path(job["run"]))
    return None


def _no_training(folder: Path) -> UsageError:
    return UsageError.of("cli/dynamic.no-training", where=str(folder), folder=folder)


def _start(args: argparse.Namespace, live: Live | None) -> dict[str, Any]:
    alive = [] if live is None else live.alive()
    if not alive and args.start_step is None:
        raise _no_training(args.folder)
    if args.steps < 1:
        raise UsageError.of("cli/dynamic.no-steps")
    start = args.start_step if args.start_step is not None or live is None else live.next_step()
    content = {
        **_first_file(live), **window_options(args), "start_step": start,
        "stop_step": start + args.steps - 1, "generation": _next_generation(args.folder, alive),
    }  # fmt: skip
    if args.analyse:
        content["analyse_mode"] = 1
    wish = config.wish(content)
    _write(args.folder, content)
    answer = {name: content[name] for name in ("generation", "start_step", "stop_step")}
    answer["run"] = str(live.run) if live else None
    steps = steps_text(start, start + args.steps)
    window = message("cli/dynamic.window", steps=steps, generation=content["generation"])
    if not alive or live is None:
        return {**answer, "text": message("cli/dynamic.requested-of-next", window=window)}
    if not args.wait:
        text = message("cli/dynamic.requested", window=window, ranks=ranks_text(len(alive)),
                       folder=args.folder)  # fmt: skip
        return {**answer, "text": text}
    entry = live.wait_for(wish.key, args.timeout, _print_progress)
    if entry is None:
        reasons = "; ".join(live.reasons())
        raise UsageError.of("cli/dynamic.timed-out", where=str(args.folder), hint=reasons)
    answer |= {"start_step": entry.start, "stop_step": entry.stop - 1}
    steps = steps_text(entry.start, entry.stop)
    return {**answer, "text": message("cli/dynamic.recorded", steps=steps, run=live.run)}


def _first_file(live: Live | None) -> dict[str, Any]:
    """Asks for nothing, with switches as the run was started."""
    with contextlib.suppress(StrobeError):
        if live is not None:
            return config.first_file(Options.from_stored(read_manifest(live.run).options))
    return config.first_file()


def _print_progress(progress: Message) -> None:
    text = localized("cli/attach.recording", progress=progress)
    print(f"strobe: {text}", file=sys.stderr, flush=True)


def _write(folder: Path, content: dict[str, Any]) -> None:
    try:
        replace(folder / CONFIG_FILE, content)
    except OSError as error:
        raise UsageError.of(
            "cli/dynamic.not-written", where=str(folder / CONFIG_FILE),
            reason=error.strerror or error,
        ) from error  # fmt: skip


def _next_generation(folder: Path, alive: list[Any]) -> int:
    """Past that of the file, which need not be one that can be read, and of all ranks."""
    numbers = [status.generation for status in alive]
    with contextlib.suppress(Unreadable):
        numbers.append(parse(read_text(folder / CONFIG_FILE)).get("generation", 0))
    return max((number for number in numbers if isinstance(number, int)), default=0) + 1


def _stop(args: argparse.Namespace, live: Live | None) -> dict[str, Any]:
    alive = [] if live is None else live.alive()
    if not alive or live is None:
        raise _no_training(args.folder)
    _write(args.folder, {**_first_file(live),
                         "generation": _next_generation(args.folder, alive)})  # fmt: skip
    drop_into(live.inbox, {"stop": True, "by": "strobe dynamic stop"})
    text = message("cli/dynamic.stopping", ranks=ranks_text(len(alive)))
    return {"run": str(live.run), "text": text}


def _status(args: argparse.Namespace, live: Live | None) -> dict[str, Any]:
    if live is None or not live.ranks():
        raise _no_training(args.folder)
    wrong = _wrong_with_file(args.folder) or next((s.config for s in live.ranks() if s.config), "")
    rows = [live.rank_json(status) for status in live.ranks()]
    return {"run": str(live.run), "config": wrong, "ranks": rows,
            "text": "\n".join(_status_lines(args.folder, live, wrong))}  # fmt: skip


def _wrong_with_file(folder: Path) -> str:
    try:
        config.wish(parse(read_text(folder / CONFIG_FILE)))
    except Unreadable as error:
        return config.unreadable(error)
    except UsageError as error:
        return config.invalid(error)
    return ""


def _status_lines(folder: Path, live: Live, wrong: str) -> list[str]:
    statuses = live.ranks()
    ranks = ranks_text(len(statuses))
    lines = [localized("cli/dynamic.status", folder=folder, ranks=ranks, run=live.run), ""]
    lines.append(localized("cli/dynamic.status-columns"))
    for status in statuses:
        state = live.state(status)
        if status.is_leader and not live.is_dead(status):
            state = message("cli/dynamic.leader", state=state)
        lines.append(f"  {status.rank:>4}  {status.host[:12]:<12} {status.pid:>8} "
                     f"{status.step:>8}  {in_language(state, users_language())}")  # fmt: skip
        if status.reason:
            lines.append(f"  {'':>4}  {status.reason}")
    queued = max((status.queued for status in statuses if not live.is_dead(status)), default=0)
    if queued:
        lines += ["", localized("cli/dynamic.pending", count=queued)]
    wrong = in_language(wrong, users_language())
    lines += ["", wrong or localized("cli/dynamic.file-valid", file=CONFIG_FILE)]
    return lines
