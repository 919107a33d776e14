"""Which rank is this process, and which folder of the run does it write to?"""

import os
import shutil
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from strobe.model.journal import FACTS_FILE
from strobe.model.manifest import MANIFEST_FILE, Manifest, write_manifest

# Launchers, and the variables they set: (rank, world size, local rank).
_LAUNCHERS = (
    ("RANK", "WORLD_SIZE", "LOCAL_RANK"),  # torchrun, deepspeed, accelerate
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK"),
    ("MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_SIZE", "MV2_COMM_WORLD_LOCAL_RANK"),
    ("PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID"),
    ("PMIX_RANK", "PMIX_SIZE", "PMIX_LOCAL_RANK"),
    ("SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID"),
    ("RANK_ID", "RANK_SIZE", "DEVICE_ID"),
)


@dataclass(frozen=True)
class Place:
    rank: int | None = None
    world_size: int | None = None
    local_rank: int | None = None


def of_this_process() -> Place:
    """From torch.distributed or jax.distributed if initialized, otherwise from the launcher's
    variables.
    """
    distributed = sys.modules.get("torch.distributed")
    if distributed is not None and distributed.is_available() and distributed.is_initialized():
        local = _number("LOCAL_RANK")
        return Place(distributed.get_rank(), distributed.get_world_size(), local)
    state: Any = getattr(sys.modules.get("jax._src.distributed"), "global_state", None)
    if getattr(state, "client", None) is not None:
        return Place(state.process_id, state.num_processes, _number("LOCAL_RANK"))
    for rank, size, local_name in _LAUNCHERS:
        if _number(rank) is not None:
            return Place(_number(rank), _number(size), _number(local_name))
    return Place()


def take_run(folder: Path, manifest: Manifest) -> bool:
    """Create a run in this folder; False if it is not empty or another run is starting there.

    Raises OSError, and leaves nothing behind.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if any(folder.iterdir()):
            return False
        os.close(os.open(folder / MANIFEST_FILE, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644))
    except FileExistsError:
        return False
    try:
        write_manifest(folder, manifest)
    except OSError:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    return True


def claim(run: Path, said: Place) -> tuple[int, Path]:
    """Create `rank_N` for this process; if another process has it, the next free number."""
    rank = said.rank or 0
    run.mkdir(parents=True, exist_ok=True)
    while True:
        folder = run / f"rank_{rank}"
        try:
            folder.mkdir()
            return rank, folder
        except FileExistsError:
            rank = max(rank + 1, said.world_size or 0) if rank == (said.rank or 0) else rank + 1


def have_all_ended(run: Path) -> bool:
    """Whether every rank that is there, or should be, has recorded its end."""
    folders = list(run.glob("rank_*"))
    world_size = of_this_process().world_size or 1
    return len(folders) >= world_size and all(_has_ended(folder / "raw") for folder in folders)


def _has_ended(raw: Path) -> bool:
    try:
        lines = (raw / FACTS_FILE).read_bytes().splitlines()
    except OSError:
        return False
    return bool(lines) and lines[-1].startswith(b'{"type": "end"')


def leave_word(run: Path, what: str) -> None:
    """Report to `strobe run` why a process could not record, if its rank has no folder for that."""
    try:
        with open(run / "problems.txt", "a", encoding="utf-8") as file:
            file.write(f"{time.time_ns()} pid {os.getpid()}: {what}\n")
    except OSError:  # the folder itself is the problem, which was reported on stderr
        return


def start_ticks(pid: int) -> int | None:
    """When a process started, in clock ticks since boot: distinguishes a reused pid."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_bytes()
        return int(stat.rpartition(b")")[2].split()[19])
    except (OSError, ValueError, IndexError):
        return None


def _number(variable: str) -> int | None:
    value = os.environ.get(variable, "")
    return int(value) if value.isdigit() else None
