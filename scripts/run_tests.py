"""Run the tests, and repeat those that depend on timing if they fail.

    python scripts/run_tests.py [arguments of pytest]

Only tests marked `timing` are repeated: once, one at a time, after all others. Each repeat is
listed at the end and recorded in flips.jsonl with the commit and the load of the machine. Any other
test that fails fails the run at once.
"""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

FAILED = Path(".pytest_cache/v/cache/lastfailed")
FLIPS = Path("flips.jsonl")
TESTS_FAILED = 1
# More failures than this are no coincidence, and are not repeated.
MOST_REPEATS = 8


def main(arguments: list[str]) -> int:
    if any(word.startswith("-n") for word in arguments):
        # Each worker starts with one half of the tests in order, so that the tests of a file share
        # its fixtures; the worker that finishes first takes over tests of the other.
        arguments = ["--dist", "worksteal", *arguments]
    FAILED.unlink(missing_ok=True)
    code = _pytest(*arguments)
    failed = set(json.loads(FAILED.read_text())) if FAILED.exists() else set()
    if code != TESTS_FAILED or not 0 < len(failed) <= MOST_REPEATS:
        return code
    if failed - _timing(failed):
        return code
    return _repeat(sorted(failed))


def _timing(tests: set[str]) -> set[str]:
    """Those of these tests that are marked `timing`."""
    command = [sys.executable, "-m", "pytest", "--collect-only", "-o", "addopts=", "-q"]
    listed = subprocess.run(
        [*command, "-m", "timing", *tests], capture_output=True, text=True, check=False
    )
    return tests & set(listed.stdout.splitlines())


def _repeat(tests: list[str]) -> int:
    _print("These tests depend on timing, and are repeated once:", *tests)
    codes = {test: _pytest("--timeout", "600", test) for test in tests}
    with FLIPS.open("a", encoding="utf-8") as flips:
        for test, code in codes.items():
            flips.write(json.dumps(_flip(test, code == 0)) + "\n")
    passed = [test for test, code in codes.items() if code == 0]
    if passed:
        _print(f"These tests failed, then passed ({FLIPS}):", *passed)
    return max(codes.values())


def _flip(test: str, has_passed: bool) -> dict[str, object]:
    head = subprocess.run(["git", "rev-parse", "HEAD"], capture_output=True, text=True, check=False)
    return {
        "test": test,
        "passed_when_repeated": has_passed,
        "commit": head.stdout.strip() or None,
        "load": os.getloadavg()[0],
        "unix_s": int(time.time()),
    }


def _pytest(*arguments: str) -> int:
    return subprocess.call([sys.executable, "-m", "pytest", *arguments])


def _print(*lines: str) -> None:
    sys.stdout.write("\n" + "\n  ".join(lines) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
