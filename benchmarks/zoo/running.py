"""Run scripts of the zoo in processes of their own: recorded, timed, and under torch's matcher."""

import json
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.zoo.catalogue import Script

INSIDE = Path(__file__).resolve().parent / "inside"
# Far above what any script needs, on a machine that does other work too.
LIMIT_S = 300
# The first updates pay for what later ones find ready; they are not timed, as the advice does not
# judge them either.
WARM_UP_UPDATES = 3


class Failed(Exception):
    """A script or a command did not end well."""


def record(script: Script, run: Path) -> None:
    """As people do it, with no option but where to."""
    _call([*_strobe("run"), "-q", "-o", str(run), "--", *_launch(script), str(script.path)])


def advice_of(run: str) -> dict[str, Any]:
    answer: dict[str, Any] = json.loads(_call([*_strobe("advise"), run, "--json"]))
    return answer


def seconds_of(script: Script, *, with_warm_up: bool, with_waits_for_a_core: bool) -> float:
    """Of all updates past the warm-up, by a stopwatch that is not Strobe's."""
    with tempfile.TemporaryDirectory() as folder:
        _call([*_launch(script), str(INSIDE / "stopwatch.py"), folder, str(script.path)])
        moments = json.loads((Path(folder) / "rank_0.json").read_text())
    began, ended = moments[0 if with_warm_up else WARM_UP_UPDATES], moments[-1]
    passed, without_core = (end - begin for begin, end in zip(began, ended, strict=True))
    return float(passed if with_waits_for_a_core else passed - without_core)


def patterns_in(script: Script) -> list[str]:
    """What torch.profiler's own pattern matcher says of the script."""
    with tempfile.TemporaryDirectory() as folder:
        said = Path(folder) / "said.json"
        try:
            _call([*_launch(script), str(INSIDE / "matching.py"), str(said), str(script.path)])
            lines: list[str] = json.loads(said.read_text())
        except (Failed, OSError) as error:
            return [f"it broke: {error}"]
    return lines


def traceml_of(script: Script, command: str) -> dict[str, str]:
    """The main verdict of TraceML, with its reason and its advice."""
    with tempfile.TemporaryDirectory() as logs:
        try:
            _call([
                command, "run", "--logs-dir", logs, "--run-name", "zoo", "--nproc-per-node",
                str(script.ranks), str(INSIDE / "under_traceml.py"), "--args", str(script.path),
            ])  # fmt: skip
            summary = json.loads((Path(logs) / "zoo" / "final_summary.json").read_text())
        except (Failed, OSError) as error:
            return {"verdict": "failed", "why": str(error), "next": ""}
    found = summary["primary_diagnosis"]
    return {"verdict": found["status"], "why": found["summary"], "next": found["action"]}


def _launch(script: Script) -> list[str]:
    """What stands before the script's name in the shell."""
    if script.ranks == 1:
        return [sys.executable]
    many = ["--standalone", "--nproc-per-node", str(script.ranks)]
    return [sys.executable, "-m", "torch.distributed.run", *many]


def _strobe(command: str) -> list[str]:
    return [sys.executable, "-m", "strobe", command]


def _fresh(place: str) -> dict[str, str]:
    """No run finds what an earlier one compiled."""
    return {"TORCHINDUCTOR_CACHE_DIR": f"{place}/compiled"}


def _call(command: list[str]) -> str:
    """Its output. It works in an empty folder, in case a script leaves files."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as place:
        process = subprocess.Popen(
            command, cwd=place, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            env={**os.environ, "KINETO_LOG_LEVEL": "99", **_fresh(place)}, start_new_session=True,
        )  # fmt: skip
        try:
            output, errors = process.communicate(timeout=LIMIT_S)
        except subprocess.TimeoutExpired:
            # Also what it started: a script that hangs must not outlive its turn.
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
            raise Failed(f"took more than {LIMIT_S} s: {command[-1]}") from None
    if process.returncode:
        last = (errors.strip() or "no message").splitlines()[-1]
        raise Failed(f"{Path(command[-1]).name}: {last}")
    return output
