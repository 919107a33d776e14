"""The option data_simplification: once a rank's tables are built, its traces are deleted.

The light recording stays; it is small, and shows how the rank ended. From then on the tables are
the only source about operators, and are kept whatever version reads them.
"""

import contextlib
import json
import shutil
from pathlib import Path
from typing import Any

from strobe.ingest.recording import windows
from strobe.ingest.recording.journal_reader import read_facts
from strobe.ingest.trace.problems import Problems
from strobe.model.manifest import write_json

SIMPLIFIED_FILE = "simplified.json"


def is_simplified(raw: Path) -> bool:
    return (raw / SIMPLIFIED_FILE).exists()


def simplify(raw: Path, stamp: dict[str, Any]) -> bool:
    """Delete the traces of a rank that ended well enough to be built; returns whether it did."""
    if stamp.get("failed") or stamp["rank"]["state"] == "recording" or not _is_wanted(raw):
        return False
    traces = list(windows.files(raw).values())
    if not traces:
        return False
    # Recorded first: a rank whose traces are missing without a reason would be built again.
    write_json(raw / SIMPLIFIED_FILE, {"deleted": [path.name for path in traces]})
    for path in traces:
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
            continue
        with contextlib.suppress(OSError):  # then it stays, which does no harm
            path.unlink()
    return True


def _is_wanted(raw: Path) -> bool:
    facts = read_facts(raw, Problems())
    given = next((f.get("options") for f in reversed(facts) if f["type"] == "options"), None)
    if isinstance(given, dict) and given.get("data_simplification") is True:
        return True
    asked = [f.get("options") for f in facts if f["type"] == "asked window"]
    return bool(asked) and all(
        isinstance(own, dict) and own.get("data_simplification") is True for own in asked
    )


def deleted(raw: Path) -> set[int]:
    """The windows whose traces were deleted after they were read."""
    try:
        names = json.loads((raw / SIMPLIFIED_FILE).read_text(encoding="utf-8"))["deleted"]
    except (OSError, ValueError, KeyError, TypeError):
        return set()
    return {number for name in names if (number := windows.number_of(str(name))) is not None}
