"""Work of the loop that is not training: checkpoints, plots, logging, recognised by its stacks."""

from strobe.advise.fixes import fix
from strobe.advise.training import Training

CHECKPOINT, PLOT, LOGGING = "a checkpoint", "a plot", "logging"
LOADER_START = "the start of a data loader"
FREED_GRADIENTS = "the memory of gradients, which zero_grad frees"

# By a part of a file's path or a function's name in the sampled stacks.
_SIGNS = {
    CHECKPOINT: (
        "torch/serialization.py",
        "mindspore/train/serialization.py",
        "pickle.py",
        "safetensors",
        "checkpoint",
        "orbax",
    ),
    PLOT: ("matplotlib", "plotly", "seaborn"),
    LOGGING: ("tensorboard", "wandb", "mlflow", "logging/__init__.py"),
    LOADER_START: ("torch/utils/data/", "multiprocessing/popen"),
    FREED_GRADIENTS: ('"zero_grad"',),
}
_MOSTLY_RATIO = 0.5


def kind_at(training: Training, condition: str) -> str | None:
    """Of samples that meet a condition (SQL over `sample_times`)."""
    rows = training.rows(f"""
        SELECT stack, sum(dur_ns)::BIGINT AS dur_ns FROM sample_times WHERE {condition}
        GROUP BY stack
    """)
    return kind_of({row["stack"]: row["dur_ns"] for row in rows})


def kind_of(stacks: dict[str, int]) -> str | None:
    """By the stacks, each with its time."""
    total_ns = sum(stacks.values())
    for what, signs in _SIGNS.items():
        matching = sum(ns for stack, ns in stacks.items() if any(sign in stack for sign in signs))
        if total_ns and matching >= _MOSTLY_RATIO * total_ns:
            return what
    return None


def background_fix(training: Training, what: str | None) -> str | None:
    """How to do it while training goes on."""
    if what == CHECKPOINT:
        return fix("save-in-background", training.framework)
    if what == PLOT:
        return "draw after training, or in another process, from values that were kept"
    if what == LOGGING:
        return "hand the values to a thread that writes them"
    return None
