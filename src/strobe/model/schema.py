"""The tables of a run as data, a sentence per column; storage, JSON and docs derive from it."""

from strobe.model.metric_tables import (
    HISTOGRAMS,
    HYPERPARAMETERS,
    IMAGES,
    LINEAGE,
    SCALARS,
    TENSORS,
    TEXTS,
)
from strobe.model.table import Column as Column
from strobe.model.table import ColumnType as ColumnType
from strobe.model.table import Table as Table

# Increase it when a stored table changes, and add the step to store/migrate.py.
SCHEMA_VERSION = 5

# Ids of events and tracks are unique within the run: the rank is in the bits above these.
RANK_SHIFT = 40

# The closed list of what an event can be. Analyses filter on it and never on names.
KINDS = {
    "step": "one training step; steps tile the time of a rank from its first step to its last",
    "phase": "a part of a step, such as forward; the phases of a step tile it",
    "op": "an operator run by the host (aten::mm, ...), nested operators included",
    "module": "the forward call of a module of the model; scope is its full path",
    "kernel": "a computation on a device",
    "collective": "communication between ranks",
    "memcpy": "a copy between host and device memory, or within one",
    "memset": "filling device memory",
    "runtime": "a call into the device's runtime or driver",
    "sync": "the host waiting for a device",
    "data": "the training loop waiting for its next batch",
    "python": "a Python function",
    "annotation": "an interval that the user or the framework named",
    "gc": "a pause for Python's garbage collector",
    "mark": "an instant or an interval of no other kind",
}

# The closed list of what an operator computes. Rules ask for families, never for parts of names.
FAMILIES = {
    "matmul": "matrix products and linear layers",
    "convolution": "convolutions",
    "recurrent": "recurrent layers and their cells",
    "attention": "attention",
    "normalization": "layers that normalize",
    "pooling": "pooling",
    "activation": "activations, softmax included",
    "loss": "loss functions",
    "embedding": "lookups of rows in a table",
    "one-hot": "making one-hot vectors",
    "elementwise": "arithmetic and comparisons, element by element",
    "reduction": "sums, means, extremes, norms",
    "random": "dropout and numbers of a uniform or normal distribution",
    "sampling": "numbers of other distributions",
    "sort": "sorting, medians, quantiles",
    "top-k": "the k largest elements",
    "cumulative sum": "running sums",
    "scan": "running products and extremes",
    "linear algebra": "decompositions, inverses, systems of equations",
    "distance": "distances of all pairs",
    "scatter": "writes to computed positions",
    "gather": "reads from computed positions",
    "filter": "results whose size depends on values: nonzero, unique",
    "special function": "error functions, gamma functions and the like",
    "fft": "Fourier transforms",
    "callback": "calls from a compiled program back to Python",
    "copy": "copies, conversions, and joining of tensors",
    "view": "other shapes of the same elements, and parts of them",
    "fill": "new tensors with given values",
    "update": "updates of many parameters at once",
    "communication": "communication between ranks, waits, synchronization",
    "bookkeeping": "questions about a tensor, and reading a single value",
}

# Annotations on a track next to the steps: forward passes that do not train.
EVALUATION = "evaluation"
EVALUATION_WITH_GRADIENTS = "evaluation with gradients"
# Of a module in evaluation mode inside a training step (a teacher), next to one in training mode.
FORWARD_IN_EVALUATION_MODE = "forward in evaluation mode"

# The track of compiled programs as a whole, whichever thread called them.
COMPILED_PROGRAMS = "compiled programs"

# "recorder" is Strobe's own work between steps: starting and ending a window of full recording.
PHASES = ("gap", "forward", "backward", "all_reduce", "update", "rest", "recorder")

EVENTS = Table(
    "events",
    "One row per event: something that took an interval of time on a track.",
    (
        Column("id", "i64", "Row number, unique within the run."),
        Column("track_id", "i64", "The track it happened on; joins tracks.id."),
        Column("ts_ns", "i64", "Start, in nanoseconds since the run began, on the shared clock."),
        Column("dur_ns", "i64", "Duration in nanoseconds; 0 for an instant."),
        Column("kind", "str", f"One of {', '.join(KINDS)}."),
        Column("name", "str", "Name: aten::mm, step 7, forward."),
        Column("step", "i64", "The step it began in, counted from 1.", nullable=True),
        Column("parent_id", "i64", "Innermost enclosing event on its track; joins id.", True),
        Column("launcher_id", "i64", "Host event that launched it; joins id.", nullable=True),
        Column("scope", "str", "Full path of the module it worked for.", nullable=True),
    ),
)

TRACKS = Table(
    "tracks",
    "One row per row of the timeline: a thread, a device stream, the steps of a rank.",
    (
        Column("id", "i64", "Unique within the run."),
        Column("rank", "i64", "Rank of the process it belongs to."),
        Column("device", "str", "cpu, cuda:0, ...; or steps, for the track of steps and phases."),
        Column("name", "str", "Name of the thread or stream."),
        Column("process", "i64", "Operating-system id of the process.", nullable=True),
        Column("thread", "i64", "Operating-system id of the thread, or stream number.", True),
    ),
)

COUNTERS = Table(
    "counters",
    "One row per measurement of a counter.",
    (
        Column("rank", "i64", "Rank of the process that measured it."),
        Column("ts_ns", "i64", "When, in nanoseconds since the run began."),
        Column("name", "str", "What was measured; the name ends with the unit."),
        Column("value", "f64", "The value."),
    ),
)

LINKS = Table(
    "links",
    "One row per pair of events where one causes the other.",
    (
        Column("from_id", "i64", "The cause; joins events.id."),
        Column("to_id", "i64", "The effect; joins events.id."),
        Column("kind", "str", "forward_backward, or another kind of link."),
    ),
)

OP_ARGS = Table(
    "op_args",
    "Arguments of operators; one row per operator whose arguments were recorded.",
    (
        Column("event_id", "i64", "The operator; joins events.id."),
        Column("input_shapes", "str", "Shapes of the inputs, as JSON: [[8, 16], [16, 4]].", True),
        Column("input_dtypes", "str", 'Types of the inputs, as JSON: ["float", ...].', True),
        Column("output_shapes", "str", "Shapes of the outputs, as JSON, where derivable.", True),
        Column("concrete_inputs", "str", "Values of the scalar inputs, as JSON.", nullable=True),
        Column("flops", "i64", "Floating-point operations; a multiply-add counts as two.", True),
        Column("bytes", "i64", "Bytes of inputs, and of outputs where their shape is known.", True),
        Column(
            "sequence", "i64", "Autograd's sequence number, which joins forward and backward.", True
        ),
        Column("is_backward", "bool", "Whether it ran inside a backward pass."),
        Column("node", "str", "Name of this operator in its graph, where it has one.", True),
        Column("call", "i64", "The source's number of this call; its parts share it.", True),
        Column("family", "str", f"What it computes: {', '.join(FAMILIES)}.", nullable=True),
    ),
)

# Directions of a copy.
DIRECTIONS = (
    "host to device", "device to host", "device to device", "peer to peer", "host to host",
)  # fmt: skip

KERNEL_ARGS = Table(
    "kernel_args",
    "Launch parameters; one row per kernel, copy, fill and collective on a device.",
    (
        Column("event_id", "i64", "The kernel, copy, fill or collective; joins events.id."),
        Column("stream", "i64", "Stream it ran on.", nullable=True),
        Column("grid", "str", "Blocks in the grid, as JSON [x, y, z].", nullable=True),
        Column("block", "str", "Threads in a block, as JSON [x, y, z].", nullable=True),
        Column("bytes", "i64", "Bytes moved, for copies and fills.", nullable=True),
        Column("direction", "str", f"For copies: {', '.join(DIRECTIONS)}.", nullable=True),
        Column("host_memory", "str", "For copies from or to the host: pageable or pinned.", True),
        Column("registers", "i64", "Registers that each thread used.", nullable=True),
        Column("shared_memory_bytes", "i64", "Shared memory of each block.", nullable=True),
        Column(
            "occupancy_ratio", "f64", "Share of the device's warps that it could keep busy.", True
        ),
        Column("precision", "str", "Precision of a matrix product: float32, tf32, ...", True),
    ),
)

COLLECTIVE_ARGS = Table(
    "collective_args",
    "What a collective communicated; one row per collective.",
    (
        Column("event_id", "i64", "The collective; joins events.id."),
        Column("operation", "str", "all_reduce, all_gather, ..."),
        Column("group", "str", "Name of the process group.", nullable=True),
        Column("group_size", "i64", "Ranks in the group.", nullable=True),
        Column("bytes", "i64", "Bytes that this rank sent.", nullable=True),
        Column("dtype", "str", "Type of the elements.", nullable=True),
        Column("group_ranks", "str", "Ranks of the group, as JSON [0, 1, ...].", nullable=True),
        Column("received_bytes", "i64", "Bytes that this rank received.", nullable=True),
        Column("algorithm", "str", "Algorithm: ring, tree, collnet, nvls.", nullable=True),
        Column("protocol", "str", "Protocol: ll, ll128, simple.", nullable=True),
    ),
)

ALLOCATIONS = Table(
    "allocations",
    "One row per block of memory allocated while memory was recorded.",
    (
        Column("rank", "i64", "Rank of the process."),
        Column("address", "i64", "Address of the block."),
        Column("bytes", "i64", "Its size."),
        Column("ts_ns", "i64", "When it was allocated, in nanoseconds since the run began."),
        Column("freed_ns", "i64", "When it was freed; null if no free was recorded.", True),
        Column("device", "str", "cpu, cuda:0, ..."),
        Column("event_id", "i64", "Innermost event that allocated it; joins events.id.", True),
    ),
)

# Prefix of the counter with the number of workers of a MindData operation; the name of its queue
# follows.
WORKERS = "workers of "

QUEUES = Table(
    "queues",
    "One row per measurement of the length of an input queue.",
    (
        Column("rank", "i64", "Rank of the process."),
        Column("ts_ns", "i64", "When, in nanoseconds since the run began."),
        Column("name", "str", "Name of the queue."),
        Column("length", "i64", "Batches ready in the queue."),
        Column("capacity", "i64", "Maximum number of batches.", nullable=True),
    ),
)

BATCHES = Table(
    "batches",
    "One row per batch that a data loader built, in a worker or in the training process.",
    (
        Column("rank", "i64", "Rank of the process that trains on it."),
        Column("loader", "i64", "Number of the data loader within its rank, from 1."),
        Column("worker", "i64", "Number of the worker, from 0; -1 for the training process."),
        Column("batch", "i64", "Number of the batch within its pass over the data, from 0.", True),
        Column("ts_ns", "i64", "When work on it began, in nanoseconds since the run began."),
        Column("idle_ns", "i64", "How long the worker had waited for this request.", True),
        Column("fetch_ns", "i64", "Time to fetch the items: calls of the dataset."),
        Column("fetch_cpu_ns", "i64", "CPU time of that; the rest is reading and waiting."),
        Column(
            "fetch_queued_ns", "i64", "Time of that ready to run, but without a free core.", True
        ),
        Column("collate_ns", "i64", "Time to collate the items into a batch."),
        Column("send_ns", "i64", "CPU time to send it to the training process.", True),
        Column("items", "i64", "Number of items.", nullable=True),
        Column("bytes", "i64", "Size of its tensors.", nullable=True),
    ),
)

PLACES = Table(
    "places",
    "One row per line of user code that matters: where a loader is created, where the loop is.",
    (
        Column("rank", "i64", "Rank of the process."),
        Column("what", "str", "data loader, data loop, model call, backward, update, zero_grad."),
        Column("number", "i64", "Number among places of the same sort, from 1."),
        Column("file", "str", "Path of the file."),
        Column("line", "i64", "Line number, from 1."),
        Column("function", "str", "Function that contains it.", nullable=True),
        Column("details", "str", 'Settings, as JSON: {"num_workers": 0, ...}.', nullable=True),
    ),
)

PROBLEMS = Table(
    "problems",
    "One row per problem: something that could not be recorded or read.",
    (
        Column("rank", "i64", "Rank affected; null for the whole run.", nullable=True),
        Column("source", "str", "File, or part of Strobe, where it happened."),
        Column("what", "str", "What is missing or wrong, and what to do about it."),
        Column("count", "i64", "How often."),
    ),
)

SAMPLES = Table(
    "samples",
    "One row per sample of a Python stack, taken at intervals while training ran.",
    (
        Column("rank", "i64", "Rank of the process."),
        Column("ts_ns", "i64", "When, in nanoseconds since the run began."),
        Column("thread", "str", "training, data worker N of loader L, or thread NAME."),
        Column("place", "str", "Innermost line of user code: train.py:31.", True),
        Column("stack", "str", "Innermost first, as JSON: [[file, line, function], ...]."),
        Column("function", "str", "Function that contains the place.", nullable=True),
        Column("cpu_ns", "i64", "Time the thread had been running or ready to run.", True),
        Column("waited_ns", "i64", "How long the sampler waited for the GIL.", nullable=True),
    ),
)

# Those of training metrics. A rank that recorded none of one has no file for it.
METRIC_TABLES = (
    HISTOGRAMS,
    HYPERPARAMETERS,
    IMAGES,
    LINEAGE,
    SCALARS,
    TENSORS,
    TEXTS,
)  # keep sorted

STORED_TABLES = (
    ALLOCATIONS,
    BATCHES,
    COLLECTIVE_ARGS,
    COUNTERS,
    EVENTS,
    HISTOGRAMS,
    HYPERPARAMETERS,
    IMAGES,
    KERNEL_ARGS,
    LINEAGE,
    LINKS,
    OP_ARGS,
    PLACES,
    PROBLEMS,
    QUEUES,
    SAMPLES,
    SCALARS,
    TENSORS,
    TEXTS,
    TRACKS,
)  # keep sorted
