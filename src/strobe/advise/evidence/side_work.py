"""Work between the passes, recognized by its stacks: checkpoints, plots, logging, rollouts."""

from strobe.advise.fixes import at_line, fix
from strobe.advise.training import Training
from strobe.analyse.tables.steps import python_lines
from strobe.frameworks import of_all
from strobe.messages import Message, message

CHECKPOINT, PLOT, LOGGING, EVALUATION = "checkpoint", "plot", "logging", "evaluation"
LOADER_START, FREED_GRADIENTS = "loader-start", "freed-gradients"

# Parts of a file's path, or names of functions, in the sampled stacks.
_SIGNS = {
    CHECKPOINT: of_all(lambda framework: framework.checkpoints),
    PLOT: ("matplotlib", "plotly", "seaborn"),
    LOGGING: ("tensorboard", "wandb", "mlflow", "logging/__init__.py"),
    LOADER_START: of_all(lambda framework: framework.loader_starts),
    FREED_GRADIENTS: tuple(f'"{name}"' for name in of_all(lambda one: one.frees_gradients)),
}
_MOSTLY_RATIO = 0.5

# Signs of a model that acts: the library of the environment, or an action drawn from a distribution
# (not `rsample`, which variational models use). A small part of the samples is enough, because the
# rest is the model itself.
_ENVIRONMENTS = r"/(gymnasium|gym|pettingzoo|dm_control|dm_env|minigrid|envpool)/"
_ACTIONS = r'/distributions/\w+\.py", \d+, "sample"'
_ROLLOUT_RATIO = 0.05
# The part of the acting time that is saved if 2 or 8 environments share a forward pass. How many
# can is up to the script.
ROLLOUT_RANGE = 0.5, 0.87
ROLLOUT_FIX = message("side-work.act-in-more-environments")


def kind_at(training: Training, condition: str) -> str | None:
    """The kind of work in the samples that meet a condition (SQL over `sample_times`)."""
    rows = training.rows(f"""
        SELECT stack, sum(dur_ns)::BIGINT AS dur_ns FROM sample_times WHERE {condition}
        GROUP BY stack
    """)
    return kind_of({row["stack"]: row["dur_ns"] for row in rows})


def kind_of(stacks: dict[str, int]) -> str | None:
    """The kind of work in these stacks, each with its time; None if it is not recognized."""
    total_ns = sum(stacks.values())
    for kind, signs in _SIGNS.items():
        matching = sum(ns for stack, ns in stacks.items() if any(sign in stack for sign in signs))
        if total_ns and matching >= _MOSTLY_RATIO * total_ns:
            return kind
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


def subject(kind: str | None, line: str | None) -> Message | None:
    """The work as the subject of a sentence: "A checkpoint at train.py:12". None if neither its
    kind nor its line is known."""
    at = at_line(line)
    named = {
        CHECKPOINT: message("side-work.checkpoint", at=at),
        PLOT: message("side-work.plot", at=at),
        LOGGING: message("side-work.logging", at=at),
        EVALUATION: message("side-work.evaluation", at=at),
        FREED_GRADIENTS: message("side-work.freeing-gradients", at=at),
    }
    if kind in named:
        return named[kind]
    return message("side-work.code", line=line) if line else None


def background_fix(training: Training, kind: str | None, line: str | None) -> Message | None:
    """How to do this work while training continues; None if that is not known."""
    if kind == CHECKPOINT:
        saving = fix("save-in-background", training.framework)
        return message("side-work.fix-with-line", fix=saving, line=line) if line else saving
    if kind == PLOT:
        return message("side-work.plot-later", at=at_line(line))
    if kind == LOGGING:
        return message("side-work.log-in-thread", at=at_line(line))
    return None
