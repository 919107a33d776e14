"""The stored tables of training metrics: what a training logged, beside what it cost."""

from strobe.model.table import Column, Table

# Sources of a metric. Those of other tools are named after the tool: tensorboard, wandb, ...
AUTOMATIC, LOGGED = "automatic", "strobe.log"

# Folder of content-addressed files, below the recorder's raw/ or the built tables/.
BLOBS_DIR = "blobs"

# Kinds of lineage.
LINEAGE_KINDS = ("train", "evaluation", "dataset", "custom")


def _of_a_tag(*columns: Column) -> tuple[Column, ...]:
    """Columns that every value of a tag has, around its own."""
    return (
        Column("rank", "i64", "Rank of the process that logged it."),
        Column("tag", "str", "What it is called: loss, accuracy/validation."),
        Column("step", "i64", "Training step, as the script counts; null if unknown.", True),
        Column("ts_ns", "i64", "When it was logged, in nanoseconds since the run began.", True),
        *columns,
        Column("source", "str", f"{AUTOMATIC}, {LOGGED}, or the tool that wrote it: tensorboard."),
        Column("attempt", "i64", "1, and one more after each resume of the run."),
    )


SCALARS = Table(
    "scalars",
    "One row for each number that was logged.",
    (
        *_of_a_tag(Column("value", "f64", "The number; NaN and infinity are values, not nulls.")),
        Column("epoch", "f64", "Epoch it belongs to, where the source says so.", nullable=True),
    ),
)

HISTOGRAMS = Table(
    "histograms",
    "One row for each distribution that was logged.",
    _of_a_tag(
        Column("count", "i64", "Number of values, including NaN and infinite ones."),
        Column("nan_count", "i64", "Number of values that are NaN."),
        Column("positive_infinity_count", "i64", "Number of values that are +Inf."),
        Column("negative_infinity_count", "i64", "Number of values that are -Inf."),
        Column("min", "f64", "Smallest finite value.", nullable=True),
        Column("max", "f64", "Largest finite value.", nullable=True),
        Column("sum", "f64", "Sum of the finite values.", nullable=True),
        Column("sum_squares", "f64", "Sum of the squares of the finite values.", nullable=True),
        Column("edges", "str", "Edges of the bins, as JSON: n + 1 increasing numbers."),
        Column("counts", "str", "Number of finite values in each bin, as JSON: n numbers."),
    ),
)

_FILE = "Path of the file below the rank's folder; equal contents share a file."

IMAGES = Table(
    "images",
    "One row for each image that was logged.",
    _of_a_tag(
        Column("index", "i64", "Position within the images logged together, from 0."),
        Column("width", "i64", "Width in pixels.", nullable=True),
        Column("height", "i64", "Height in pixels.", nullable=True),
        Column("channels", "i64", "1 gray, 2 gray with alpha, 3 RGB, 4 RGBA.", nullable=True),
        Column("format", "str", "Format of the file: png, jpeg, gif."),
        Column("file", "str", _FILE),
        Column("bytes", "i64", "Size of the file."),
    ),
)

TENSORS = Table(
    "tensors",
    "One row for each tensor that was logged.",
    _of_a_tag(
        Column("dtype", "str", "Type of the elements, in numpy's words: float32, int64, bfloat16."),
        Column("shape", "str", "Length of each dimension, as JSON: [8, 16]."),
        Column("min", "f64", "Smallest finite element.", nullable=True),
        Column("max", "f64", "Largest finite element.", nullable=True),
        Column("mean", "f64", "Mean of the finite elements.", nullable=True),
        Column("nan_count", "i64", "Number of elements that are NaN.", nullable=True),
        Column("plugin", "str", "What draws it, if not a plain tensor: pr_curves, mesh.", True),
        Column("file", "str", _FILE + " It is a .npy file."),
        Column("bytes", "i64", "Size of the file."),
    ),
)

TEXTS = Table(
    "texts",
    "One row for each text that was logged.",
    _of_a_tag(Column("text", "str", "The text, often Markdown.")),
)


def _named(subject: str) -> tuple[Column, ...]:
    return (
        Column("name", "str", f"Name of the {subject}."),
        Column("value", "str", "Its value as text; lists and objects as JSON."),
        Column("number", "f64", "Its value as a number, if it is one.", nullable=True),
    )


HYPERPARAMETERS = Table(
    "hyperparameters",
    "One row for each hyperparameter of the training.",
    (
        Column("rank", "i64", "Rank of the process; null for the whole run.", nullable=True),
        *_named("hyperparameter"),
        Column("source", "str", "What recorded it: strobe.log, tensorboard."),
    ),
)

LINEAGE = Table(
    "lineage",
    "One row for each fact about where a model comes from: its data, settings and results.",
    (
        Column("rank", "i64", "Rank of the process; null for the whole run.", nullable=True),
        Column("kind", "str", f"One of {', '.join(LINEAGE_KINDS)}."),
        *_named("fact"),
        Column("step", "i64", "Training step it was recorded at.", nullable=True),
        Column("source", "str", "What recorded it: strobe.log, strobe.mindspore, mindspore."),
    ),
)
