"""The journal of a rank: what the recorder leaves in `rank_N/raw/`, and how to read it back.

`journal-0001.bin`, `-0002.bin`, ...: a header of 4096 bytes (magic, length, JSON), then records
of 24 bytes. The file is allocated in full before it is mapped, so unwritten records are zero; the
code is written last, so a record is whole exactly when its code is not 0. Killing the process
at any moment leaves every finished record readable.

`facts.jsonl`: everything that is not a mark, one JSON object a line, with its `type`:
  process   pid, host, rank, world_size, argv, framework and versions, clock anchor
  string    id, kind (module, optimizer, loader, counter, collective, scope, stack, program), text;
            a stack is JSON, innermost frame first: [which is the user's, [[file, line, function],
            ...]]
  place     what, file, line, function, details, monotonic_ns: a line of the user's own code
  window    number, file, steps wanted, options, began/ended (monotonic ns), state
  asked window  window (its number), generation, steps, asked_start, by, why, options: one that was
            asked for while training ran; for each of its pieces
  problem   source, what, count
  thread    id (as in the marks), native_id, name
  place     what, number?, file, line, function, details
  data workers  number (of the loader), pids, monotonic_ns
  worker    pid, id, dataset, monotonic_ns; in the journal of a data worker
  end       state (finished, failed, interrupted), unix_ns, monotonic_ns
Window N leaves `window-000N.trace.json.gz` and `window-000N.names.json` beside it.

All times are `time.monotonic_ns()` of that machine; CLOCK records pair them with the wall clock.
"""

import struct
from enum import IntEnum

MAGIC = b"STROBEJ1"
HEADER_BYTES = 4096
HEADER = struct.Struct("<8sI")  # magic, length of the JSON that follows

# ts_ns, value, ref, thread, code: the code comes last because it makes the record valid.
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
    STEP = 11  # strobe.step(): a step ends here, said by hand
    GC_PAUSE = 12  # ts: its start; value: length in ns * 4 + generation
    COUNTER = 13  # ref: name of the counter; value: the measured integer
    CLOCK = 14  # value: wall clock in ns since 1970 at ts
    WINDOW_BEGAN = 15  # value: number of the window; ref: 1 if it goes on where the last one ended
    WINDOW_ENDED = 16  # value: number of the window
    SCOPE_BEGAN = 17  # ref: name; strobe.scope()
    SCOPE_ENDED = 18  # ref: name
    ALL_REDUCE = 19  # ts: start; value: length in ns of gradient all-reduce not hidden by backward
    # ts: start; value: length in ns that Strobe itself held the loop up; ref: 0, or BESIDE_TRAINING
    # on a thread of its own, so that it held up at most what did not go on meanwhile
    OWN_WORK = 20
    ZERO_GRAD = 21  # ts: start; value: length in ns of clearing the gradients
    SAMPLE = 22  # ref: stack; value: us the thread was busy << 20 | us waited to look at it

    QUEUE = 30  # ref: name of the queue; value: capacity << QUEUE_CAPACITY_SHIFT | length
    BATCH = 31  # ts: when it was begun; ref: loader << BATCH_LOADER_SHIFT | Figure; value: of it
    LOADER_BEGAN = 32  # ref: loader; an iterator over it is made, which starts its workers
    LOADER_STARTED = 33  # ref: loader
    # ts: start; ref: its name; value: length in ns << GRAPH_PARTS_BITS | GRAPH_FORWARD | ...
    # A compiled graph that trains was called: it may have run several parts of a step, which only
    # its operators tell apart.
    GRAPH = 34
    # ts: start; ref: program; value: length in ns in which the host handed a compiled program over
    # to its device, which may run it later. What it does is marked when it was done.
    DISPATCH = 35
    DEVICE_WAIT = 36  # ts: start; value: length in ns that the host waited for a device
    # ref: stack; value: ns that the thread has had a core; a look at another thread of Python's
    SAMPLE_BESIDE = 37


class Figure(IntEnum):
    """What a BATCH mark says of its batch. The marks of one batch have the same time."""

    NUMBER = 1  # of the batch within its pass over the data, from 0
    ITEMS = 2
    BYTES = 3
    IDLE_NS = 4  # waited for the order
    FETCH_NS = 5
    FETCH_CPU_NS = 6
    FETCH_QUEUED_NS = 7  # ready to run, but no core was free
    COLLATE_NS = 8
    SEND_NS = 9


# SHORT_BATCH: one mark tells all of a short batch that the training thread made itself. From low to
# high bits: two for the 1 that says a batch came, then so many each for FETCH_NS, for the part of
# it off the processor, and for COLLATE_NS. It began so long before it came.
SHORT_BATCH_BITS = 20
SHORT_BATCH_FIRST_BIT = 2

# A batch whose making was off the processor for less than this has no FETCH_QUEUED_NS: to ask costs
# more than it could tell.
SHORT_WAIT_NS = 50_000

# Counter: how long the training thread was ready to run without a core, since it began.
NO_CORE_COUNTER = "training_no_core_ns_total"

# What a place tells of: parameters that get gradients but belong to no optimizer.
UNTRAINED_PARAMETERS = "untrained parameters"
# Or: gradients that are cleared before their optimizer has used them.
DISCARDED_GRADIENTS = "discarded gradients"
# Or: how much of the sequences that a model is given is padding.
PADDED_INPUTS = "padded inputs"

# Counter: whether a debug mode of this name is on (1) or off (0).
DEBUG_MODE_COUNTER = "debug_mode_{}"
# Counters: what a stack trace costs that anomaly detection takes, and each further frame of it.
ANOMALY_STACK_COUNTER, ANOMALY_FRAME_COUNTER = "anomaly_stack_ns", "anomaly_frame_ns"

# What threads of the training process are there for: the one that trains and those of its
# framework; those of a framework's input pipeline; those that the script or a library has started
# in Python; Strobe's own. Beside them, the processes below it.
TRAINING_THREADS, DATA_THREADS = "training_threads", "data_threads"
PYTHON_THREADS, STROBE_THREADS = "python_threads", "strobe_threads"
CHILD_PROCESSES = "child_processes"
# Place: a function that such a process runs, or the line that started it.
STARTED_PROCESS = "process"

# Counters: how long they had a core, and were ready to run without one.
ON_CORE_OF, NO_CORE_OF = "{}_cpu_ns_total", "{}_no_core_ns_total"
# Counter: how long another program of this name had a core while training lacked cores.
OTHER_PROGRAM = "other program {} cpu_ns_total"

# So ends the name of a program that is no compiled one: its operations are called one by one.
NOT_COMPILED = ", not compiled"

# Counter: operations that the script has called one by one beside the compiled program that trains.
SINGLE_OPERATIONS = "single_operations_total"

# Counters "NAME of a compiled program ...": what its compiler says that one call costs a device.
PROGRAM_FLOPS, PROGRAM_BYTES = "program_flops", "program_bytes"

# The loader is 0 in the journal of a worker: the training process knows whose worker it is.
BATCH_LOADER_SHIFT = 8
QUEUE_CAPACITY_SHIFT = 32

# Counter: CPU time that writing windows of full recording has taken so far, alongside training.
WRITING_CPU_COUNTER = "recorder_writing_cpu_ns_total"

# Folder of a run in which data workers leave their journals: HOST-PID of the process that they
# work for, and below it PID-NANOSECONDS of the worker.
WORKERS_DIR = "workers"
# Source, in the table of problems, of what is not known of data workers.
DATA_WORKERS = "data workers"

# How the scope of a compilation by torch.compile begins.
COMPILATION = "compilation "
# Why, in such a name, if it is not called with anything else than before.
MADE_ANEW = "the function was created again"

BESIDE_TRAINING = 1

GRAD_ENABLED = 1
TRAINING_MODE = 2

# The call of a compiled graph returned, and nothing waited for the graph itself.
UPDATE_RAN_ON = 1

# What a compiled graph does.
GRAPH_FORWARD, GRAPH_BACKWARD, GRAPH_UPDATE = 1, 2, 4
GRAPH_PARTS_BITS = 3

# The value of a SAMPLE holds its waiting, at most a second, in so many low bits.
SAMPLE_WAIT_BITS = 20
