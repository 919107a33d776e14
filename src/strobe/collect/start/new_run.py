"""Begin a run: its first run.json, and a recorder that creates its folder when it needs it."""

import os
import platform
import sys
import time
from pathlib import Path

from strobe.collect import notebooks
from strobe.collect.recorder import Recorder
from strobe.collect.start import job
from strobe.model.manifest import Manifest
from strobe.model.options import Options


def new_manifest(options: Options, recorded_by: str, command: list[str]) -> Manifest:
    return Manifest(
        started_unix_ns=time.time_ns(), recorded_by=recorded_by, command=command,
        directory=os.getcwd(), host=platform.node(), python=platform.python_version(),
        options=options.to_json(),
    )  # fmt: skip


def new_recorder(path: Path, options: Options, recorded_by: str, owner: str) -> Recorder:
    """All ranks of a job get the same folder: see job.py."""
    # The script may change its working directory while it is recorded.
    place = Path(os.path.abspath(path))
    # Kineto writes a line on stderr at each start and stop of a window.
    os.environ.setdefault("KINETO_LOG_LEVEL", "99")

    # The run begins now. Its folder is created when training is detected, and a compiled step is
    # detected only at its end.
    manifest = new_manifest(options, recorded_by, [])

    def find() -> Path:
        notebook = notebooks.title()
        # The arguments are not available yet when Python starts.
        manifest.command = [notebook] if notebook else list(getattr(sys, "argv", []))
        return job.run_folder(place, manifest)

    return Recorder(place, options, owner, find)
