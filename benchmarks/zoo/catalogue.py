"""What is in the zoo: every script, and what is true of it."""

from dataclasses import dataclass
from pathlib import Path

SCRIPTS = Path(__file__).resolve().parent / "scripts"
REPAIRED = "_repaired"

# Which part of the input pipeline is at fault, where the rule is to name it.
STAGES = {
    "feature_server": "reading",
    "object_store": "reading",
    "one_worker": "workers",
    "padding_by_hand": "collate",
    "paged_generator": "reading",
    "pixel_loops": "transform",
    "short_epochs": "restarts",
    "tokenise_stream": "transform",
}
# Scripts that torchrun starts, in so many processes.
RANKS = {
    "average_by_hand": 2,
    "long_sequences_together": 2,
    "metrics_on_one_rank": 2,
    "sync_every_microbatch": 2,
    "two_ranks": 2,
}
# Faults that are truly there as well, in the faulty script and in its twin, and why.
ALSO_TRUE = {
    "annealed_temperature": {"warm-up": "compiles at its first step, as any compiled training"},
    "compiled": {"warm-up": "compiles at its first step, as any compiled training"},
    "index_on_first_access": {"data-starvation": "records are cut out of a text in the loop"},
    "lengths_vary": {"warm-up": "compiles at its first step, as any compiled training"},
    "metrics_on_one_rank": {"data-starvation": "256 rows fetched one by one, a fifth of a step"},
    "records_of_everything": {
        "host-gap": "a thousand records made in Python at every step",
        "memory-growth": "the records are kept",
    },
    "validation_loop": {"periodic-stall": "half of the time goes into validation"},
}


@dataclass(frozen=True)
class Script:
    """One file to run, and the fault that is in it."""

    name: str  # data_starvation/object_store
    path: Path
    fault: str | None  # the rule that must find it; None for healthy and repaired ones
    ranks: int
    also_true: tuple[str, ...]


@dataclass(frozen=True)
class Pair:
    """A fault and its repair."""

    name: str
    rule: str
    stage: str | None
    faulty: Script
    repaired: Script


def pairs() -> list[Pair]:
    """The folder is the rule's name."""
    return [
        _pair(path)
        for path in sorted(SCRIPTS.glob("*/*.py"))
        if path.parent.name != "healthy" and not path.stem.endswith(REPAIRED)
    ]


def healthy() -> list[Script]:
    return [_script(path, None) for path in sorted((SCRIPTS / "healthy").glob("*.py"))]


def _pair(path: Path) -> Pair:
    rule = path.parent.name.replace("_", "-")
    twin = path.with_name(f"{path.stem}{REPAIRED}.py")
    return Pair(
        name=_name(path), rule=rule, stage=STAGES.get(path.stem),
        faulty=_script(path, rule), repaired=_script(twin, None),
    )  # fmt: skip


def _script(path: Path, fault: str | None) -> Script:
    stem = path.stem.removesuffix(REPAIRED)
    also = (*ALSO_TRUE.get(stem, {}), *_threads(path))
    return Script(_name(path), path, fault, RANKS.get(stem, 1), also)


def _threads(path: Path) -> tuple[str, ...]:
    """Nearly all scripts compute on one thread, to be alike on every machine: where a second core
    is idle, that is a fault of them too."""
    return ("idle-cores",) if "set_num_threads(1)" in path.read_text(encoding="utf-8") else ()


def _name(path: Path) -> str:
    return f"{path.parent.name}/{path.stem}"
