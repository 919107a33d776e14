"""Environments with a framework that cannot live beside the others, made once and kept.

They lie in the user's cache (or in STROBE_TEST_CACHE), one for each list of requirements and
version of Python; STROBE_TEST_PYTHON_JAX and the like name an interpreter to use instead. Strobe
itself comes from the checkout. Where one cannot be made, the tests that need it are skipped and say
why.
"""

import fcntl
import functools
import hashlib
import json
import os
import platform
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
REQUIREMENTS = ROOT / "requirements"

# What Strobe needs to record and to answer, out of run.txt.
_OF_STROBE = {"duckdb", "markdown-it-py", "mdurl", "msgspec", "numpy", "pygments", "rich",
              "typing_extensions", "zstandard"}  # fmt: skip
# Large wheels over a slow line.
_PATIENCE_S = 1500
# Variables by which Strobe, a launcher or pytest would speak to the processes we start.
_NOT_PASSED_ON = ("STROBE_", "MS_PROFILER", "PYTHONPATH", "RANK", "WORLD_SIZE", "LOCAL_RANK")


def python_of(framework: str) -> Path:
    """An interpreter that can import the framework; skips the test if there can be none."""
    found, why = _made(framework)
    if found is None:
        pytest.skip(f"no environment with {framework}: {why}")
    return found


def environment(**variables: str) -> dict[str, str]:
    passed_on = {k: v for k, v in os.environ.items() if not k.startswith(_NOT_PASSED_ON)}
    return {**passed_on, "PYTHONPATH": str(ROOT / "src"), **variables}


def run(
    framework: str, *command: str | Path, timeout_s: float = 120, cwd: Path | None = None,
    **variables: str,
) -> subprocess.CompletedProcess[str]:  # fmt: skip
    """Python of that environment with these arguments."""
    words = [str(python_of(framework)), *map(str, command)]
    return subprocess.run(
        words, env=environment(**variables), cwd=cwd, capture_output=True, text=True,
        timeout=timeout_s, check=False,
    )  # fmt: skip


def strobe(framework: str, *command: str | Path, **given: Any) -> str:
    """What a command of Strobe prints; it must succeed."""
    done = run(framework, "-m", "strobe", *command, **given)
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    return done.stdout


def rows(framework: str, folder: Path, query: str) -> list[dict[str, Any]]:
    """What `strobe sql` answers."""
    answer = json.loads(strobe(framework, "sql", folder, query, "--json"))
    names = [column["name"] for column in answer["columns"]]
    return [dict(zip(names, row, strict=True)) for row in answer["rows"]]


@functools.cache
def _made(framework: str) -> tuple[Path | None, str]:
    given = os.environ.get(f"STROBE_TEST_PYTHON_{framework.upper()}")
    if given:
        return Path(given), ""
    lines = _requirements(framework)
    text = "\n".join([*lines, platform.python_version(), platform.machine()])
    key = hashlib.sha256(text.encode()).hexdigest()[:12]
    home = _CACHE / f"{framework}-{key}"
    home.parent.mkdir(parents=True, exist_ok=True)
    with open(home.with_suffix(".lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # the other worker builds it, and is waited for
        python = home / "bin" / "python"
        if (home / ".complete").exists():
            return python, ""
        shutil.rmtree(home, ignore_errors=True)
        why = _make(home, lines)
        if why:
            shutil.rmtree(home, ignore_errors=True)
            return None, why
        (home / ".complete").touch()
        return python, ""


def _cache_folder() -> Path:
    given = os.environ.get("STROBE_TEST_CACHE")
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(given) if given else Path(home) / "strobe-tests"


# Of the process, before any test gives it another home.
_CACHE = _cache_folder()


def _requirements(framework: str) -> list[str]:
    own = _lines(REQUIREMENTS / f"test-{framework}.txt")
    theirs = {_name(line) for line in own}
    ours = [line for line in _lines(REQUIREMENTS / "run.txt") if _name(line) in _OF_STROBE]
    return own + [line for line in ours if _name(line) not in theirs]


def _lines(path: Path) -> list[str]:
    text = path.read_text(encoding="utf-8")
    return [line.strip() for line in text.splitlines() if line.strip() and line[0] != "#"]


def _name(line: str) -> str:
    return re.split(r"[=<>~\[; ]", line)[0].lower()


def _make(home: Path, lines: list[str]) -> str:
    """Why it could not be; empty if it could."""
    commands = [
        [sys.executable, "-m", "venv", str(home)],
        [str(home / "bin" / "python"), "-m", "pip", "install", "--quiet", "--no-deps",
         "--disable-pip-version-check", *lines],
    ]  # fmt: skip
    for command in commands:
        try:
            done = subprocess.run(
                command, capture_output=True, text=True, timeout=_PATIENCE_S, check=False
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            return f"{command[2]}: {error}"
        if done.returncode:
            return (done.stderr.strip().splitlines() or ["pip failed"])[-1]
    return ""


def main() -> None:
    """Make them all before the tests, which have less time each than a large wheel may take."""
    for file in sorted(REQUIREMENTS.glob("test-*.txt")):
        framework = file.stem.removeprefix("test-")
        made, why = _made(framework)
        sys.stdout.write(f"{framework}: {'ready' if made else f'tests are skipped: {why}'}\n")


if __name__ == "__main__":
    main()
