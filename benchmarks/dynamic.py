"""Ten thousand edits of profiler_config.json, good and bad, while ranks train.

    python -m benchmarks.dynamic [--ranks 8] [--edits 10000] [--step-ms 20]

About every 20 steps a good edit asks for a window and stands for a moment; between those the file
is torn, garbled, rolled back, deleted, and replaced by things that are no file. Then it is counted:
does every rank still answer, did all ranks record the same steps for each generation, was any
window missed, doubled, or made of two edits; and were steps outside of windows as long as before.
"""

import argparse
import contextlib
import json
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from strobe.collect.on_demand.config import CONFIG_FILE, SETTLED_S, first_file

TRAIN = Path(__file__).with_name("dynamic_train.py")
# A good edit stands for so long: an editor's save does, and no reader sees what stands shorter.
STANDS_S = 0.2
WINDOW_EVERY = 20


class Editor:
    """Changes the file in every way we know of."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.path = folder / CONFIG_FILE
        self.random = random.Random(seed)
        self.asked: dict[int, int] = {}  # first step: how many
        self.stood: dict[tuple[int, int], bool] = {}  # torn ones that stood like an edit
        self.count = 0
        self._old: list[str] = [json.dumps(first_file())]

    def ask(self, step: int) -> None:
        """A good one, put in place whole or written over, as people do it."""
        start, count = step + self.random.randint(12, 16), self.random.randint(1, 3)
        while start in self.asked:
            start += 1
        self.asked[start] = count
        text = json.dumps({**first_file(), "start_step": start, "stop_step": start + count - 1})
        self._clear()
        if self.random.random() < 0.5:
            beside = self.path.with_suffix(".new")
            beside.write_text(text)
            os.replace(beside, self.path)
        else:
            self.path.write_text(text)
        self._old.append(text)
        self.count += 1
        time.sleep(STANDS_S)

    def spoil(self) -> None:
        kinds = (self._torn, self._garbled, self._typed_wrong, self._unknown, self._rolled_back,
                 self._deleted, self._folder, self._link, self._pipe, self._huge, self._empty,
                 self._refused)  # fmt: skip
        self._clear()
        self.random.choice(kinds)()
        self.count += 1
        time.sleep(self.random.choice((0, 0.001, 0.005, 0.02)))

    def _clear(self) -> None:
        if self.path.is_dir() and not self.path.is_symlink():
            shutil.rmtree(self.path)
        elif self.path.is_symlink() or (self.path.exists() and not self.path.is_file()):
            self.path.unlink()

    def _torn(self) -> None:
        """The head of one over the tail of another, not cut: the first bytes come, the others a
        moment later. If the machine lets us wait for long in between, it was an edit."""
        text = self.random.choice(self._old)
        if not self.path.exists():
            self.path.write_text(self._old[-1])
        with open(self.path, "r+", encoding="utf-8") as file:
            file.write(text[: self.random.randint(1, len(text) - 1)])
            file.flush()
            began = time.monotonic()
            time.sleep(self.random.choice((0, 0.001, 0.005, 0.02)))
            torn = self.path.read_text()
            file.truncate(0)
        if time.monotonic() - began > SETTLED_S / 2:
            with contextlib.suppress(ValueError, KeyError, TypeError):
                content = json.loads(torn)
                start, stop = content["start_step"], content["stop_step"]
                self.stood[start, stop - start + 1] = True

    def _garbled(self) -> None:
        self.path.write_text(self.random.choice(('{"start_step": 5', "[1, 2]", "null", "{,}",
                                                 '{"start_step": NaN}', "[" * 5000)))  # fmt: skip

    def _typed_wrong(self) -> None:
        key = self.random.choice(("start_step", "stop_step", "with_stack", "profiler_level"))
        value = self.random.choice(("110", 1.5, [], {}, "yes", 10**30))
        self.path.write_text(json.dumps({**first_file(), key: value}))

    def _unknown(self) -> None:
        self.path.write_text(json.dumps({**first_file(), "start_stepp": 3}))

    def _refused(self) -> None:
        self.path.write_text(json.dumps({**first_file(), "start_step": 9, "stop_step": 2}))

    def _rolled_back(self) -> None:
        self.path.write_text(self.random.choice(self._old[:-1] or self._old))

    def _deleted(self) -> None:
        self.path.unlink(missing_ok=True)

    def _folder(self) -> None:
        self.path.unlink(missing_ok=True)
        self.path.mkdir()

    def _link(self) -> None:
        self.path.unlink(missing_ok=True)
        self.path.symlink_to("/dev/zero")

    def _pipe(self) -> None:
        self.path.unlink(missing_ok=True)
        os.mkfifo(self.path)

    def _huge(self) -> None:
        self.path.write_bytes(b" " * (1 << 20))

    def _empty(self) -> None:
        self.path.write_bytes(self.random.choice((b"", b"\xff\xfe{", b"\0" * 100)))


def statuses(run: Path) -> list[dict]:
    found = []
    for path in sorted((run / "live" / "ranks").glob("rank_*.json")):
        try:
            found.append(json.loads(path.read_text()))
        except (OSError, ValueError):
            continue
    return found


def furthest(run: Path) -> int:
    now = time.monotonic_ns()
    steps = [s["step"] + (now - s["monotonic_ns"]) // s["step_ns"] if s["step_ns"] else s["step"]
             for s in statuses(run)]  # fmt: skip
    return max(steps, default=0)


def wait_until(is_so, timeout_s: float) -> bool:
    deadline = time.monotonic() + timeout_s
    while time.monotonic() < deadline:
        if is_so():
            return True
        time.sleep(0.1)
    return False


def storm(run: Path, editor: Editor, edits: int) -> None:
    next_at = furthest(run)
    while editor.count < edits:
        step = furthest(run)
        if step >= next_at:
            editor.ask(step)
            next_at = step + WINDOW_EVERY
        else:
            editor.spoil()


def recorded(run: Path) -> list[dict[int, dict]]:
    """Of each rank: by generation, the window it recorded."""
    ranks = []
    for path in sorted(run.glob("rank_*/raw/facts.jsonl")):
        facts = [json.loads(line) for line in path.read_text().splitlines()]
        windows: dict[int, dict] = {}
        for fact in facts:
            if fact["type"] == "asked window":
                windows.setdefault(fact["generation"], fact)
        ranks.append(windows)
    return ranks


def judge(run: Path, editor: Editor) -> dict[str, object]:
    ranks = [
        {g: fact for g, fact in windows.items()
         if (fact["asked_start"], fact["steps"][1] - fact["steps"][0]) not in editor.stood}
        for windows in recorded(run)
    ]  # fmt: skip
    first = {g: tuple(fact["steps"]) for g, fact in ranks[0].items()}
    differ = [g for other in ranks[1:] for g in set(first) | set(other)
              if first.get(g) != tuple(other.get(g, {}).get("steps", ()))]  # fmt: skip
    starts = [fact["asked_start"] for fact in ranks[0].values()]
    lengths = {fact["asked_start"]: fact["steps"][1] - fact["steps"][0]
               for fact in ranks[0].values()}  # fmt: skip
    torn = [start for start, length in lengths.items() if editor.asked.get(start) != length]
    on_time = sum(fact["asked_start"] == fact["steps"][0] for fact in ranks[0].values())
    return {
        "ranks": len(ranks), "edits": editor.count, "windows asked for": len(editor.asked),
        "windows recorded": len(first), "at the very step": on_time,
        "missed": len(set(editor.asked) - set(starts)), "doubled": len(starts) - len(set(starts)),
        "made of two edits": len(torn), "generations that ranks disagree on": len(set(differ)),
    }  # fmt: skip


def slowdown(reports: list[Path], calm: tuple[int, int], windows: list[tuple[int, int]]) -> dict:
    """Steps among edits, outside of windows, over steps before: their whole length, and the part in
    which they compute, which is short here and feels the other processes most."""
    near = {step for start, stop in windows for step in range(start - 3, stop + 8)}
    ratios: dict[str, list[float]] = {"step": [], "computing in it": []}
    for path in reports:
        ends = json.loads(path.read_text())
        before: list[tuple[int, int]] = []
        among: list[tuple[int, int]] = []
        for number, ((last, _), (at, took)) in enumerate(zip(ends, ends[1:], strict=False), 2):
            if calm[0] <= at < calm[1]:
                before.append((at - last, took))
            elif at >= calm[1] and number not in near:
                among.append((at - last, took))
        for place, name in enumerate(ratios):
            sides = [statistics.median(step[place] for step in side) for side in (among, before)]
            ratios[name].append(sides[0] / sides[1])
    return {f"{name} among edits / before": round(statistics.median(found), 3)
            for name, found in ratios.items()}  # fmt: skip


def measure(
    ranks: int, edits: int, step_ms: float, seed: int = 0, keep: bool = False
) -> dict[str, object]:
    home = Path(tempfile.mkdtemp(prefix="strobe-dynamic-"))
    run, dyn, stop = home / "run", home / "dyn", home / "stop"
    command = [sys.executable, "-m", "strobe", "run", "-q", "--dynamic", str(dyn), "-o", str(run),
               "--", sys.executable, str(TRAIN), "launch", str(ranks), str(step_ms / 1000),
               str(home / "ends"), str(stop)]  # fmt: skip
    with open(home / "stderr", "wb") as stderr:
        job = subprocess.Popen(command, stderr=stderr)
    try:
        assert wait_until(lambda: len(statuses(run)) == ranks, 600), "the ranks did not start"
        time.sleep(3)
        calm = time.monotonic_ns(), 0
        time.sleep(10)
        calm = calm[0], time.monotonic_ns()
        editor = Editor(dyn, seed)
        storm(run, editor, edits)
        editor._clear()
        last = max(editor.asked)
        settled = wait_until(lambda: all(
            s["state"] == "training" and s["step"] > last + 10 and not s["queued"]
            for s in statuses(run)
        ), 600)  # fmt: skip
        # The last word: is everybody still listening?
        editor.ask(furthest(run) + 50)
        last = max(editor.asked)
        alive = wait_until(lambda: last in {
            fact["asked_start"] for fact in recorded(run)[0].values()}, 120)  # fmt: skip
        wait_until(lambda: all(s["state"] == "training" for s in statuses(run)), 60)
    finally:
        stop.touch()
        job.wait(timeout=120)
    result = judge(run, editor)
    windows = [tuple(fact["steps"]) for fact in recorded(run)[0].values()]
    result |= {"settled": settled, "watcher alive": alive, "exit code": job.returncode}
    result |= slowdown(sorted(home.glob("ends-*.json")), calm, windows)
    result["stderr lines"] = len((home / "stderr").read_text().splitlines())
    if not keep:
        shutil.rmtree(home)
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--ranks", type=int, default=8)
    parser.add_argument("--edits", type=int, default=10_000)
    parser.add_argument("--step-ms", type=float, default=20)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--keep", action="store_true", help="leave the run in the temporary folder")
    args = parser.parse_args()
    found = measure(args.ranks, args.edits, args.step_ms, args.seed, args.keep)
    for name, value in found.items():
        print(f"{name:<36} {value}", flush=True)


if __name__ == "__main__":
    main()
