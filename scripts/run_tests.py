"""Every test once; those that failed, once more, alone.

    python scripts/run_tests.py [arguments of pytest]

Tests here start real trainings, servers and browsers, two at a time, on machines that other work
may share. One that fails so and passes alone is named at the end, not passed over in silence: it
waits for something by the clock and wants mending. More than a handful of failures are no
accident, and are not tried again.
"""

import json
import subprocess
import sys
from pathlib import Path

FAILED = Path(".pytest_cache/v/cache/lastfailed")
HANDFUL = 5
TESTS_FAILED = 1


def main(arguments: list[str]) -> int:
    FAILED.unlink(missing_ok=True)
    code = subprocess.call([sys.executable, "-m", "pytest", *arguments])
    failed = list(json.loads(FAILED.read_text())) if FAILED.exists() else []
    if code != TESTS_FAILED or not 0 < len(failed) <= HANDFUL:
        return code
    _say("once more, alone:", *failed)
    again = subprocess.call([sys.executable, "-m", "pytest", "--timeout", "600", *failed])
    if again == 0:
        _say("passed alone, failed beside other tests:", *failed)
    return again


def _say(*lines: str) -> None:
    sys.stdout.write("\n" + "\n  ".join(lines) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
