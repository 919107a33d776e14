"""Which job does this process belong to, and which folder do all its ranks record to?

Ranks start seconds apart, on several machines, and agree without communication: the first creates
the folder and writes to run.json which job it is for. Ranks that find their own job there join it;
all others take the next free name.
"""

import os
import platform
import shutil
import sys
import time
from collections.abc import Collection
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from strobe.collect import ranks
from strobe.errors import StrobeError
from strobe.model.journal import WORKERS_DIR
from strobe.model.manifest import MANIFEST_FILE, Manifest, read_manifest

# Set by the first Python process of a job that has STROBE_OPTIONS, and inherited by its children.
TOKEN_VARIABLE = "STROBE_JOB"
# The folder that a process records to, for the children that multiprocessing starts for it.
FOLDER_VARIABLE = "STROBE_JOB_RUN"

# Variables that are the same in all ranks of a job, and usually differ between jobs.
_SHARED = (
    "TORCHELASTIC_RUN_ID", "TORCHELASTIC_RESTART_COUNT", "MASTER_ADDR", "MASTER_PORT",
    "SLURM_JOB_ID", "SLURM_STEP_ID", "PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid", "PMI_JOBID",
    "HYDI_CONTROL_FD", "RANK_TABLE_FILE", "MS_SCHED_HOST", "MS_SCHED_PORT",
)  # fmt: skip

# Ranks that start further apart than this belong to different jobs, unless a common parent process
# says otherwise: addresses and ports are reused the next day.
_APART_NS = 600 * 10**9

# The content of a run before any rank trains, besides the ranks.
_OURS = (WORKERS_DIR, "live")

# How long the first rank may take between creating run.json and writing it.
_PATIENCE_S = 5.0


@dataclass(frozen=True)
class Job:
    """`key` is empty for a process on its own."""

    key: str
    token: str
    host: str
    # The parent process and the leader of its session: number and start time of each. One of the
    # two is the launcher, or the shell that started it.
    parent: str
    session: str


def of_this_process() -> Job:
    place = ranks.of_this_process()
    shared = [f"{name}={os.environ[name]}" for name in _SHARED if os.environ.get(name)]
    is_one_of_many = (place.rank is not None and place.world_size != 1) or _is_child()
    key = " ".join([f"size={place.world_size}", *shared]) if is_one_of_many else ""
    above = [f"{pid}-{ranks.start_ticks(pid)}" for pid in (os.getppid(), os.getsid(0))]
    return Job(key, os.environ.get(TOKEN_VARIABLE, ""), platform.node(), *above)


def run_folder(path: Path, manifest: Manifest) -> Path:
    """Create the run, or join it if another rank of this job created it. Raises OSError."""
    inherited = _inherited(path)
    if inherited is not None:
        return inherited
    job, rank = of_this_process(), ranks.of_this_process().rank
    manifest.job = asdict(job)
    candidate, number = path, 1
    began_ns = manifest.started_unix_ns
    while not ranks.take_run(candidate, manifest) and not _can_join(candidate, job, rank, began_ns):
        number += 1
        candidate = path.with_name(f"{path.name}-{number}")
    os.environ[FOLDER_VARIABLE] = f"{os.getpid()}:{candidate}"
    return candidate


def _inherited(path: Path) -> Path | None:
    """The folder of the process for which multiprocessing started this one, if there is one."""
    finder, _, folder = os.environ.get(FOLDER_VARIABLE, "").partition(":")
    if not folder or finder == str(os.getpid()) or not _is_child():
        return None
    found = Path(folder)
    is_of_path = found == path or (
        found.parent == path.parent and found.name.startswith(f"{path.name}-")
    )
    return found if is_of_path and found.is_dir() else None


def forget_empty(path: Path, token: str) -> None:
    """At the end of the first process of a job: delete the folder if nothing trained in it.

    Data workers create it before anybody knows whether their process will train.
    """
    for folder in (path, *sorted(path.parent.glob(f"{path.name}-*"))):
        told = _job_of(folder)
        if told is not None and told[0].get("token") == token and has_no_data(folder):
            shutil.rmtree(folder, ignore_errors=True)


def forget_unused(folder: Path) -> None:
    """At the end of a process that did not train: delete its run, unless other ranks may
    need it.
    """
    alone = ranks.of_this_process().world_size in (None, 1) and not _is_child()
    if alone and folder.is_dir() and has_no_data(folder):
        shutil.rmtree(folder, ignore_errors=True)


def has_no_data(folder: Path, others: Collection[str] = ()) -> bool:
    """Whether a run's folder contains only what is created before a rank trains."""
    known = {MANIFEST_FILE, *_OURS, *others}
    names = {entry.name for entry in folder.iterdir()}
    return MANIFEST_FILE in names and names <= known


def _can_join(folder: Path, mine: Job, rank: int | None, began_unix_ns: int) -> bool:
    theirs = _job_of(folder)
    if theirs is None or not _is_same(mine, theirs[0], abs(began_unix_ns - theirs[1])):
        return False
    # A rank that exists already was recorded by an earlier training of the same name.
    return (rank is None and _is_child()) or not (folder / f"rank_{rank or 0}").exists()


def _is_same(mine: Job, theirs: dict[str, Any], apart_ns: int) -> bool:
    if mine.token and mine.token == theirs.get("token"):
        return True
    if not mine.key or mine.key != theirs.get("key"):
        return False
    if apart_ns > _APART_NS:
        return False
    if mine.host != theirs.get("host"):
        return True
    return mine.parent == theirs.get("parent") or mine.session == theirs.get("session")


def _job_of(folder: Path) -> tuple[dict[str, Any], int] | None:
    """The job in run.json, once its creator has written it; None if there is no run of a job."""
    path = folder / MANIFEST_FILE
    deadline = time.monotonic() + _PATIENCE_S
    while path.exists():
        try:
            manifest = read_manifest(folder)
            return (manifest.job, manifest.started_unix_ns) if manifest.job else None
        except StrobeError:
            if path.stat().st_size or time.monotonic() > deadline:  # written, and not a run.json
                return None
            time.sleep(0.02)
    return None


def _is_child() -> bool:
    """Whether multiprocessing started this process."""
    process = sys.modules.get("multiprocessing.process")
    return process is not None and process.parent_process() is not None
