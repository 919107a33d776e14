"""The journal of a rank: what the recorder writes to `rank_N/raw/`, and how to read it.

`journal-0001.bin`, `-0002.bin`, ...: a header of 4096 bytes (magic, length, JSON), then records
of 24 bytes. The file is allocated in full before it is mapped, so unwritten records are zero. The
code is written last, so a record is complete if and only if its code is not 0. If the process is
killed, every finished record is still readable.

`facts.jsonl`: everything that is not a mark, one JSON object per line, with its `type`:
  process   pid, host, rank, world_size, argv, framework and versions, clock anchor
  string    id, kind (module, optimizer, loader, counter, collective, scope, stack, program), text;
            a stack is JSON, innermost frame first: [index of the user's frame, [[file, line,
            function], ...]]
  place     what, number?, file, line, function, details, monotonic_ns: a line of user code
  window    number, file, steps wanted, options, began/ended (monotonic ns), state
  asked window  window (its number), generation, steps, asked_start, by, why, options: a window that
            was requested while training ran; one fact for each of its pieces
  problem   source, what, count
  thread    id (as in the marks), native_id, name
  data workers  number (of the loader), pids, monotonic_ns
  worker    pid, id, dataset, monotonic_ns; in the journal of a data worker
  end       state (finished, failed, interrupted), unix_ns, monotonic_ns
Window N writes `window-000N.trace.json.gz` and `window-000N.names.json` to the same folder.

All times are `time.monotonic_ns()` of that machine; CLOCK records pair them with the wall clock.
"""

import struct
from enum import IntEnum

MAGIC = b"STROBEJ1"
HEADER_BYTES = 4096
HEADER = struct.Struct("<8sI")  # magic, length of the JSON that follows

# ts_ns, value, ref, thread, code. The code comes last because writing it makes the record valid.
RECORD = struct.Struct("<qqIHH")

FACTS_FILE = "facts.jsonl"
JOURNAL_GLOB = "journal-*.bin"


class Mark(IntEnum):
    """What happened at a moment. `ref` is the id of a string fact (0: none)."""

    DATA_ASKED = 1  # ref: loader; value: batches ready in its output queue, -1 unknown
    DATA_CAME = 2  # ref: loader; value: 1 a batch (or SHORT_BATCH), 0 the end, -1 an error
    FORWARD_BEGAN = 3  # ref: class of the outermost module; value: GRAD_ENABLED | TRAINING_MODE
    FORWARD_ENDED = 4  # ref: the same; value: 1 returned, 0 raised
    BACKWARD_BEGAN = 5  # value: 0 tensor.backward(), 1 autograd.grad()
    BACKWARD_ENDED = 6
    UPDATE_BEGAN = 7  # ref: optimizer
    UPDATE_ENDED = 8  # ref: optimizer; value: UPDATE_RAN_ON if its graph may have run on
    COLLECTIVE_BEGAN = 9  # ref: operation; value: bytes
    COLLECTIVE_ENDED = 10  # ref: operation
    STEP = 11  # strobe.step(): the user's script ends a step here
    GC_PAUSE = 12  # ts: its start; value: length in ns * 4 + generation
    COUNTER = 13  # ref: name of the counter; value: the measured integer
    CLOCK = 14  # value: wall clock in ns since 1970 at ts
    WINDOW_BEGAN = 15  # value: number of the window; ref: 1 if it continues the window before it
    WINDOW_ENDED = 16  # value: number of the window
    SCOPE_BEGAN = 17  # ref: name; strobe.scope()
    SCOPE_ENDED = 18  # ref: name
    ALL_REDUCE = 19  # ts: start; value: length in ns of gradient all-reduce not hidden by backward
    # ts: start; value: length in ns for which Strobe itself blocked the loop; ref: 0, or
    # BESIDE_TRAINING if it ran on a thread of its own, so that this is an upper bound
    OWN_WORK = 20
    ZERO_GRAD = 21  # ts: start; value: length in ns of clearing the gradients
    # ref: stack; value: µs the thread was busy << 20 | µs the sampler waited for the GIL
    SAMPLE = 22

    QUEUE = 30  # ref: name of the queue; value: capacity << QUEUE_CAPACITY_SHIFT | length
    # ts: start of the work on it; ref: loader << BATCH_LOADER_SHIFT | Figure; value: that figure
    BATCH = 31
    LOADER_BEGAN = 32  # ref: loader; an iterator over it is created, which starts its workers
    LOADER_STARTED = 33  # ref: loader
    # ts: start; ref: its name; value: length in ns << GRAPH_PARTS_BITS | GRAPH_FORWARD | ... A
    # compiled graph that trains was called. It may have run several parts of a step, which only its
    # operators can tell apart.
    GRAPH = 34
    # ts: start; ref: program; value: length in ns of dispatching a compiled program to its device,
    # which may run it later. What the program does is marked when the dispatch is done.
    DISPATCH = 35
    DEVICE_WAIT = 36  # ts: start; value: length in ns for which the host waited for a device
    # A sample of a Python thread other than the training thread. ref: stack; value: its CPU time in
    # ns
    SAMPLE_BESIDE = 37


class Figure(IntEnum):
    """What a BATCH mark measures about its batch. The marks of one batch have the same time."""

    NUMBER = 1  # of the batch within its pass over the data, from 0
    ITEMS = 2
    BYTES = 3
    IDLE_NS = 4  # waited for the request
    FETCH_NS = 5
    FETCH_CPU_NS = 6
    FETCH_QUEUED_NS = 7  # ready to run, but no core was free
    COLLATE_NS = 8
    SEND_NS = 9


# SHORT_BATCH: one mark for all figures of a short batch that was built on the training thread. From
# low to high bits: two for the 1 that says that a batch came, then SHORT_BATCH_BITS each for
# FETCH_NS, for its off-CPU part, and for COLLATE_NS. The batch began that long before the mark.
SHORT_BATCH_BITS = 20
SHORT_BATCH_FIRST_BIT = 2

# A batch that was off the processor for less than this has no FETCH_QUEUED_NS: measuring it would
# cost more than it shows.
SHORT_WAIT_NS = 50_000

# Counter: how long the training thread was ready to run without a core, since it began.
NO_CORE_COUNTER = "training_no_core_ns_total"

# Kinds of place. Parameters that get gradients but belong to no optimizer.
UNTRAINED_PARAMETERS = "untrained parameters"
# Gradients that are cleared before their optimizer has used them.
DISCARDED_GRADIENTS = "discarded gradients"
# How much of the sequences in a model's input is padding.
PADDED_INPUTS = "padded inputs"

# Counter: whether a debug mode of this name is on (1) or off (0).
DEBUG_MODE_COUNTER = "debug_mode_{}"
# Counters: the cost of the stack trace that anomaly detection takes, and of each further frame.
ANOMALY_STACK_COUNTER, ANOMALY_FRAME_COUNTER = "anomaly_stack_ns", "anomaly_frame_ns"

# Groups of threads of the training process: the training thread and those of its framework; those
# of the framework's input pipeline; those that the script or a library started in Python; Strobe's
# own. And the child processes.
TRAINING_THREADS, DATA_THREADS = "training_threads", "data_threads"
PYTHON_THREADS, STROBE_THREADS = "python_threads", "strobe_threads"
CHILD_PROCESSES = "child_processes"
# Place: the function that a child process runs, or the line that started it.
STARTED_PROCESS = "process"

# Counters: the CPU time of a group, and how long it was ready to run without a core.
ON_CORE_OF, NO_CORE_OF = "{}_cpu_ns_total", "{}_no_core_ns_total"
# Counter: the CPU time of another program while training was short of cores.
OTHER_PROGRAM = "other program {} cpu_ns_total"

# Suffix of the name of a program that is not compiled: its operations are called one by one.
NOT_COMPILED = ", not compiled"

# Counter: operations that the script called one by one outside the compiled training program.
SINGLE_OPERATIONS = "single_operations_total"

# Counters "NAME of a compiled program ...": the cost of one call, as its compiler reports it.
PROGRAM_FLOPS, PROGRAM_BYTES = "program_flops", "program_bytes"

# The loader is 0 in the journal of a worker: the training process knows whose worker it is.
BATCH_LOADER_SHIFT = 8
QUEUE_CAPACITY_SHIFT = 32

# Counter: CPU time spent so far on writing windows of full recording in the background.
WRITING_CPU_COUNTER = "recorder_writing_cpu_ns_total"

# Folder of a run for the journals of data workers: HOST-PID of the process that they work for, then
# PID-NANOSECONDS of the worker.
WORKERS_DIR = "workers"
# Source, in the table `problems`, of what is unknown about data workers.
DATA_WORKERS = "data workers"

# Prefix of the scope of a compilation by torch.compile.
COMPILATION = "compilation "
# The reason, in such a name, if it is not called with anything new.
MADE_ANEW = "the function was created again"

BESIDE_TRAINING = 1

GRAD_ENABLED = 1
TRAINING_MODE = 2

# The call of a compiled graph returned, and nothing waited for the graph itself to finish.
UPDATE_RAN_ON = 1

# What a compiled graph does.
GRAPH_FORWARD, GRAPH_BACKWARD, GRAPH_UPDATE = 1, 2, 4
GRAPH_PARTS_BITS = 3

# The low bits of a SAMPLE's value that are its waiting time, at most a second.
SAMPLE_WAIT_BITS = 20
