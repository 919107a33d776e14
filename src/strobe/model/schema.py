"""The tables of a run, as data, a sentence a column; storage, JSON and docs derive from it."""

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

# Raise it when a stored table changes, and add the step to store/migrate.py.
SCHEMA_VERSION = 4

# Ids of events and tracks are unique within the run: the rank sits above this many bits.
RANK_SHIFT = 40

# The closed list of what an event can be. Analyses filter on it and never on names.
KINDS = {
    "step": "one training step; steps tile the time of a rank from its first step to its last",
    "phase": "a stretch of a step: one of PHASES; the phases of a step tile it",
    "op": "an operator run by the host (aten::mm, ...), nested operators included",
    "module": "the forward call of a module of the model; scope is its full path",
    "kernel": "a computation on a device",
    "collective": "communication between ranks",
    "memcpy": "a copy between memories",
    "memset": "a fill of device memory",
    "runtime": "a call into the device's runtime or driver",
    "sync": "the host waits for a device",
    "data": "the training loop waits for its next batch",
    "python": "a Python function",
    "annotation": "a span that the user or the framework named",
    "gc": "a pause of Python's garbage collector",
    "mark": "an instant or a span of no other kind",
}

# Names of annotations on a track of their own beside the steps: forward passes that train nothing.
EVALUATION = "evaluation"
EVALUATION_WITH_GRADIENTS = "evaluation with gradients"
# Of a module in evaluation mode that training goes through, beside one in training mode: a teacher.
FORWARD_IN_EVALUATION_MODE = "forward in evaluation mode"

# The track of what compiled programs did as a whole, whatever thread called them.
COMPILED_PROGRAMS = "compiled programs"

# "recorder" is Strobe's own work between steps: starting and ending a window of full recording.
PHASES = ("gap", "forward", "backward", "all_reduce", "update", "rest", "recorder")

EVENTS = Table(
    "events",
    "One row for each thing that happened during an interval of time on a track.",
    (
        Column("id", "i64", "Row number, unique within the run."),
        Column("track_id", "i64", "The track it happened on; joins tracks.id."),
        Column("ts_ns", "i64", "Start, in nanoseconds since the run began, on the shared clock."),
        Column("dur_ns", "i64", "Length in nanoseconds; 0 for an instant."),
        Column("kind", "str", f"One of {', '.join(KINDS)}."),
        Column("name", "str", "What it is called: aten::mm, step 7, forward."),
        Column("step", "i64", "The step it began in, counted from 1.", nullable=True),
        Column("parent_id", "i64", "Innermost event of its track around it; joins id.", True),
        Column("launcher_id", "i64", "Host event that launched it; joins id.", nullable=True),
        Column("scope", "str", "Full path of the module it worked for.", nullable=True),
    ),
)

TRACKS = Table(
    "tracks",
    "One row for each row of the timeline: a thread, a device stream, the steps of a rank.",
    (
        Column("id", "i64", "Unique within the run."),
        Column("rank", "i64", "Rank of the process it belongs to."),
        Column("device", "str", "cpu, cuda:0, or steps for the track of steps and phases."),
        Column("name", "str", "Name of the thread or stream."),
        Column("process", "i64", "Operating-system id of the process.", nullable=True),
        Column("thread", "i64", "Operating-system id of the thread, or stream number.", True),
    ),
)

COUNTERS = Table(
    "counters",
    "One row for each value measured at a moment.",
    (
        Column("rank", "i64", "Rank of the process that measured it."),
        Column("ts_ns", "i64", "When, in nanoseconds since the run began."),
        Column("name", "str", "What was measured; its unit ends the name."),
        Column("value", "f64", "The value."),
    ),
)

LINKS = Table(
    "links",
    "One row for each cause between two events.",
    (
        Column("from_id", "i64", "The cause; joins events.id."),
        Column("to_id", "i64", "The effect; joins events.id."),
        Column("kind", "str", "forward_backward, or another kind of cause."),
    ),
)

OP_ARGS = Table(
    "op_args",
    "What an operator was given; one row for each operator with recorded arguments.",
    (
        Column("event_id", "i64", "The operator; joins events.id."),
        Column("input_shapes", "str", "Shapes of the inputs, as JSON: [[8, 16], [16, 4]].", True),
        Column("input_dtypes", "str", 'Types of the inputs, as JSON: ["float", ...].', True),
        Column("output_shapes", "str", "Shapes of the outputs, as JSON, where derivable.", True),
        Column("concrete_inputs", "str", "Values of the scalar inputs, as JSON.", nullable=True),
        Column("flops", "i64", "Floating-point operations; an add and a multiply are two.", True),
        Column("bytes", "i64", "Bytes of inputs, and of outputs where their shape is known.", True),
        Column("sequence", "i64", "Autograd's number joining forward and backward.", True),
        Column("is_backward", "bool", "Whether it ran inside a backward pass."),
        Column("node", "str", "Name of this very operator in its graph, where it has one.", True),
        Column("call", "i64", "The source's number of this call; its parts share it.", True),
    ),
)

# Ways of a copy.
DIRECTIONS = (
    "host to device", "device to host", "device to device", "peer to peer", "host to host",
)  # fmt: skip

KERNEL_ARGS = Table(
    "kernel_args",
    "How a device was given work; one row for each kernel, copy, fill and collective on a device.",
    (
        Column("event_id", "i64", "The kernel, copy, fill or collective; joins events.id."),
        Column("stream", "i64", "Stream it ran on.", nullable=True),
        Column("grid", "str", "Blocks in the grid, as JSON [x, y, z].", nullable=True),
        Column("block", "str", "Threads in a block, as JSON [x, y, z].", nullable=True),
        Column("bytes", "i64", "Bytes moved, for copies and fills.", nullable=True),
        Column("direction", "str", f"Of a copy: {', '.join(DIRECTIONS)}.", nullable=True),
        Column("host_memory", "str", "Of a copy from or to the host: pageable or pinned.", True),
        Column("registers", "i64", "Registers that each thread used.", nullable=True),
        Column("shared_memory_bytes", "i64", "Shared memory of each block.", nullable=True),
        Column("occupancy_ratio", "f64", "Part of the device's warps it could keep busy.", True),
        Column("precision", "str", "What a matrix product multiplies in: float32, tf32, ...", True),
    ),
)

COLLECTIVE_ARGS = Table(
    "collective_args",
    "What a collective communicated; one row for each collective.",
    (
        Column("event_id", "i64", "The collective; joins events.id."),
        Column("operation", "str", "all_reduce, all_gather, ..."),
        Column("group", "str", "Name of the process group.", nullable=True),
        Column("group_size", "i64", "Ranks in the group.", nullable=True),
        Column("bytes", "i64", "Bytes this rank put in.", nullable=True),
        Column("dtype", "str", "Type of the elements.", nullable=True),
        Column("group_ranks", "str", "Ranks of the group, as JSON [0, 1, ...].", nullable=True),
        Column("received_bytes", "i64", "Bytes this rank got out.", nullable=True),
        Column("algorithm", "str", "How it was done: ring, tree, collnet, nvls.", nullable=True),
        Column("protocol", "str", "How it was sent: ll, ll128, simple.", nullable=True),
    ),
)

ALLOCATIONS = Table(
    "allocations",
    "One row for each block of memory that was allocated while memory was recorded.",
    (
        Column("rank", "i64", "Rank of the process."),
        Column("address", "i64", "Where the block lies."),
        Column("bytes", "i64", "Its size."),
        Column("ts_ns", "i64", "When it was allocated, in nanoseconds since the run began."),
        Column("freed_ns", "i64", "When it was freed; null if it was not seen freed.", True),
        Column("device", "str", "cpu, cuda:0, ..."),
        Column("event_id", "i64", "Innermost event that allocated it; joins events.id.", True),
    ),
)

# How the counter begins that has the workers of an operation of MindData; the name of its queue
# follows.
WORKERS = "workers of "

QUEUES = Table(
    "queues",
    "One row for each moment at which the length of an input queue was seen.",
    (
        Column("rank", "i64", "Rank of the process."),
        Column("ts_ns", "i64", "When, in nanoseconds since the run began."),
        Column("name", "str", "Which queue."),
        Column("length", "i64", "Batches ready in it."),
        Column("capacity", "i64", "Batches it holds at most.", nullable=True),
    ),
)

BATCHES = Table(
    "batches",
    "One row for each batch that a data loader made, in a worker or in the training process.",
    (
        Column("rank", "i64", "Rank of the process that trains on it."),
        Column("loader", "i64", "Number of the data loader within its rank, from 1."),
        Column("worker", "i64", "Number of the worker, from 0; -1 for the training process."),
        Column("batch", "i64", "Number of the batch within its pass over the data, from 0.", True),
        Column("ts_ns", "i64", "When work on it began, in nanoseconds since the run began."),
        Column("idle_ns", "i64", "How long the worker had waited for its order before.", True),
        Column("fetch_ns", "i64", "Getting the items: the calls of the dataset."),
        Column("fetch_cpu_ns", "i64", "Of that, on a core; the rest is reading, waiting."),
        Column("fetch_queued_ns", "i64", "Of that, ready to run but without a core.", True),
        Column("collate_ns", "i64", "Making one batch of the items."),
        Column("send_ns", "i64", "Handing it over to the training process, on a core.", True),
        Column("items", "i64", "Items in it.", nullable=True),
        Column("bytes", "i64", "Bytes of its tensors.", nullable=True),
    ),
)

PLACES = Table(
    "places",
    "One row for each line of the user's code that matters: where a loader is made, a loop runs.",
    (
        Column("rank", "i64", "Rank of the process."),
        Column("what", "str", "data loader, data loop, model call, backward, update, zero_grad."),
        Column("number", "i64", "Which one of them, from 1."),
        Column("file", "str", "Path of the file."),
        Column("line", "i64", "Line in it, from 1."),
        Column("function", "str", "The function it is in.", nullable=True),
        Column("details", "str", 'Settings, as JSON: {"num_workers": 0, ...}.', nullable=True),
    ),
)

PROBLEMS = Table(
    "problems",
    "One row for each thing that could not be recorded or read.",
    (
        Column("rank", "i64", "Rank concerned; null for the whole run.", nullable=True),
        Column("source", "str", "File or part of Strobe that met it."),
        Column("what", "str", "What is missing or wrong, and what to do about it."),
        Column("count", "i64", "How often."),
    ),
)

SAMPLES = Table(
    "samples",
    "One row for each look at what Python was doing, taken now and then while training ran.",
    (
        Column("rank", "i64", "Rank of the process."),
        Column("ts_ns", "i64", "When, in nanoseconds since the run began."),
        Column("thread", "str", "training, data worker N of loader L, or thread NAME."),
        Column("place", "str", "Innermost line of the user's own code: train.py:31.", True),
        Column("stack", "str", "Innermost first, as JSON: [[file, line, function], ...]."),
        Column("function", "str", "The function that the place is in.", nullable=True),
        Column("cpu_ns", "i64", "How long the thread had computed, or was ready to.", True),
        Column("waited_ns", "i64", "How long Python's lock let the look wait.", nullable=True),
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
