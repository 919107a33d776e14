"""The journal of training metrics: what a rank logs goes to `rank_N/raw/`, beside its marks.

`metrics-0001.bin`, `-0002.bin`, ..., and `metrics-PID-0001.bin`, ... of forked processes: a header
of 4096 bytes (magic, length, JSON), then rows of 8-byte little-endian words. The file is allocated
in full before it is mapped, so words that were never written are zero. The first word of a row is
written last, so a row is complete if and only if that word is not 0. Every file can be read without
the others.

    row of values   words << WORDS_SHIFT | number of the series
                    step as the script counts it, or UNKNOWN_STEP
                    time.monotonic_ns()
                    one double for each tag of the series
    definition      words << WORDS_SHIFT | DEFINITION | number of the series
                    length of the JSON in bytes
                    {"tags": [...], "source": "..."}, padded to whole words
    record          words << WORDS_SHIFT | RECORD
                    length of the JSON in bytes
                    the record, padded to whole words

A record is a JSON object for everything that is not a scalar, with its `type`, one of RECORD_TYPES,
and the columns of the table it belongs to (model/metric_tables.py). Times are `monotonic_ns` there.
A short one is in the rows; one that is long, or needs work, is a line of `metrics.jsonl` (or
`metrics-PID.jsonl`). Files are named by `file`, in `raw/blobs/`.
"""

import struct

from strobe.model.journal import HEADER, HEADER_BYTES

__all__ = ["HEADER", "HEADER_BYTES"]

MAGIC = b"STROBEM1"
SEGMENT_GLOB = "metrics-*.bin"
SEGMENT_NAME = "metrics{}-{:04}.bin"
RECORDS_GLOB, RECORDS_NAME = "metrics*.jsonl", "metrics{}.jsonl"
# In these names: what a forked process of the rank adds to them.
OF_PROCESS = "-{}"

WORD_BYTES = 8
ROW_HEADER_WORDS = 3
WORDS_SHIFT = 32
DEFINITION, RECORD = 1 << 31, 1 << 30
UNKNOWN_STEP = -(2**63)

# A row has at most this many tags; more are logged as several rows.
MOST_TAGS = 1000
# Longer records go to metrics.jsonl.
MOST_RECORD_BYTES = 1 << 15

HISTOGRAM, IMAGE, TENSOR, TEXT = "histogram", "image", "tensor", "text"
HYPERPARAMETERS, LINEAGE, PROBLEM = "hyperparameters", "lineage", "problem"
RECORD_TYPES = (HISTOGRAM, IMAGE, TENSOR, TEXT, HYPERPARAMETERS, LINEAGE, PROBLEM)


def row_struct(tags: int) -> struct.Struct:
    """What follows the first word of a row."""
    return struct.Struct(f"<qq{tags}d")
