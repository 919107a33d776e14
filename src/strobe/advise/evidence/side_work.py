"""Work between the passes, recognised by its stacks: checkpoints, plots, logging, rollouts."""

from strobe.advise.fixes import fix
from strobe.advise.training import Training
from strobe.analyse.tables.steps import python_lines

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

# Of a model that acts: the environment's library, or an action drawn from a distribution (not
# `rsample`, by which variational models draw). This part of the samples is enough: the rest is the
# model itself.
_ENVIRONMENTS = r"/(gymnasium|gym|pettingzoo|dm_control|dm_env|minigrid|envpool)/"
_ACTIONS = r'/distributions/\w+\.py", \d+, "sample"'
_ROLLOUT_RATIO = 0.05
# What ends of the acting if 2 to 8 environments share a forward pass: how many can is for the
# script to say.
ROLLOUT_RANGE = 0.5, 0.87
ROLLOUT_FIX = "Act in more environments at once, so that one forward pass serves them all"


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


def is_rollout(training: Training) -> bool:
    """Whether a model acts in an environment, as in reinforcement learning."""
    python_lines.prepare(training.run)
    ((acting_ns, total_ns),) = training.run.sql(
        """
        SELECT coalesce(sum(dur_ns) FILTER (regexp_matches(stack, $acts)), 0),
               coalesce(sum(dur_ns), 0)
        FROM sample_times
        """,
        {"acts": f"{_ENVIRONMENTS}|{_ACTIONS}"},
    ).fetchall()
    return bool(total_ns) and acting_ns >= _ROLLOUT_RATIO * total_ns


def background_fix(training: Training, what: str | None) -> str | None:
    """How to do it while training goes on."""
    if what == CHECKPOINT:
        return fix("save-in-background", training.framework)
    if what == PLOT:
        return "draw after training, or in another process, from values that were kept"
    if what == LOGGING:
        return "hand the values to a thread that writes them"
    return None
