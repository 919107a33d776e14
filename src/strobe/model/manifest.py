"""run.json: what a run is, how it was recorded, how it ended."""

import json
import os
import tempfile
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from strobe.errors import UnreadableTrace
from strobe.model.schema import SCHEMA_VERSION
from strobe.version import __version__

MANIFEST_FILE = "run.json"

# How a run or a rank can have ended. "recording" is the state until the end is recorded; if the
# process is gone, the reader turns it into "killed".
STATES = {
    "recording": "still running",
    "finished": "ran to its end",
    "failed": "ended by an exception or a non-zero exit code",
    "interrupted": "stopped from the keyboard (SIGINT)",
    "terminated": "stopped by SIGTERM",
    "killed": "ended without recording its end: kill -9, out of memory, a crash",
}


@dataclass
class Rank:
    """One process that trained."""

    rank: int
    pid: int
    host: str
    state: str = "recording"
    world_size: int | None = None
    local_rank: int | None = None
    started_unix_ns: int | None = None
    ended_unix_ns: int | None = None
    frameworks: dict[str, str] = field(default_factory=dict)
    devices: list[str] = field(default_factory=list)
    # How the ranks share the work: backend, groups, settings of DistributedDataParallel.
    parallel: dict[str, Any] = field(default_factory=dict)


@dataclass
class Manifest:
    started_unix_ns: int  # ts_ns of every table counts from here
    recorded_by: str  # "strobe run", "strobe.Profiler", "strobe import"
    schema_version: int = SCHEMA_VERSION
    strobe_version: str = __version__
    command: list[str] = field(default_factory=list)
    directory: str = ""
    host: str = ""
    python: str = ""
    options: dict[str, Any] = field(default_factory=dict)
    state: str = "recording"
    exit_code: int | None = None
    signal: int | None = None
    ended_unix_ns: int | None = None
    ranks: list[Rank] = field(default_factory=list)
    # Identifies the job to ranks that start later: collect/start/job.py.
    job: dict[str, Any] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> "Manifest":
        """Unknown keys are ignored: a newer minor version may have written them."""
        known = {f.name for f in fields(cls)}
        values = {key: value for key, value in data.items() if key in known}
        of_rank = {f.name for f in fields(Rank)}
        values["ranks"] = [
            Rank(**{k: v for k, v in rank.items() if k in of_rank})
            for rank in values.get("ranks", [])
        ]
        return cls(**values)


def read_manifest(run: Path) -> Manifest:
    path = run / MANIFEST_FILE
    try:
        return Manifest.from_json(json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
        raise UnreadableTrace.of(
            "errors/run.bad-manifest", where=str(path), reason=error
        ) from error


def write_manifest(run: Path, manifest: Manifest) -> None:
    """All or nothing: written to a temporary file, then renamed over the old one."""
    write_json(run / MANIFEST_FILE, manifest.to_json())


def write_json(path: Path, data: Any) -> None:
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            json.dump(data, file, ensure_ascii=False, indent=1)
            file.write("\n")
        os.chmod(temporary, 0o644)
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise
