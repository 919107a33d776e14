"""What the parts of one collective know of each other, in a Kineto file.

A call leaves up to four spans: the operator `record_param_comms`, which knows the group, the ranks
and the sizes; inside it a span of the library (`nccl:all_reduce`), which knows the tensors; the
call that launches the kernel; and the kernel. Which of them say what changed over the years.
Here the library's span learns from the operator around it, and the kernel from what launched it
(where a large file is read in pieces, as far as they lie in one piece).
"""

import json
from typing import Any

import numpy as np

from strobe.ingest.building import nesting
from strobe.ingest.formats.kinds import COLLECTIVE_SPAN, KIND
from strobe.ingest.formats.kineto.json_objects import COLLECTIVE_OPERATOR
from strobe.ingest.trace.codes import Array, distinct
from strobe.ingest.trace.spans import Spans, Vocabulary

_FROM_OPERATOR = (
    "operation", "group", "group_ranks", "group_size", "dtype", "elements", "out_elements",
)  # fmt: skip
_FROM_LAUNCH = (*_FROM_OPERATOR, "dims", "dtypes")


def complete(spans: Spans, words: Vocabulary, header: dict[str, Any]) -> None:
    """Hand arguments on within each collective of a file, and write out the ranks of its group."""
    names = list(words.names)
    is_collective = spans.kind == KIND["collective"]
    operator = np.array([name == COLLECTIVE_OPERATOR for name in names] or [False])[spans.name]
    if not (is_collective | operator).any():
        return
    library = np.array([bool(COLLECTIVE_SPAN.match(name)) for name in names])[spans.name]
    host = np.flatnonzero((operator | (is_collective & library)) & (spans.arg("on_device") <= 0))
    parent = nesting.parents(spans.track[host], spans.ts_ns[host], spans.dur_ns[host])
    inner = np.flatnonzero((parent >= 0) & ~operator[host])
    _hand_on(spans, host[parent[inner]], host[inner], _FROM_OPERATOR)
    kernels = np.flatnonzero(is_collective & (spans.arg("on_device") > 0))
    around = _around_launch(spans, kernels, host)
    found = around >= 0
    _hand_on(spans, around[found], kernels[found], _FROM_LAUNCH)
    _name_operation(spans, words, kernels[found], around[found], library)
    _write_ranks(spans, words, header)


def _hand_on(spans: Spans, givers: Array, takers: Array, names: tuple[str, ...]) -> None:
    for name in names:
        column = spans.args.get(name)
        if column is not None:
            mine = column[takers]
            column[takers] = np.where(mine >= 0, mine, column[givers])


def _around_launch(spans: Spans, kernels: Array, host: Array) -> Array:
    """For each kernel the innermost span of `host` around the call that launched it, or -1."""
    result = np.full(len(kernels), -1, dtype=np.int64)
    calls = np.flatnonzero((spans.kind == KIND["runtime"]) & (spans.arg("correlation") > 0))
    if not len(calls) or not len(kernels) or not len(host):
        return result
    number = spans.arg("correlation")
    order = np.argsort(number[calls], kind="stable")
    place = np.minimum(np.searchsorted(number[calls][order], number[kernels]), len(calls) - 1)
    call = calls[order][place]
    launched = number[call] == number[kernels]
    both = np.concatenate([host, call[launched]])
    parent = nesting.parents(spans.track[both], spans.ts_ns[both], spans.dur_ns[both])
    is_host = np.arange(len(both)) < len(host)
    inside = nesting.nearest(is_host, parent)[len(host) :]
    result[launched] = np.where(inside >= 0, both[inside], -1)
    return result


def _name_operation(
    spans: Spans, words: Vocabulary, kernels: Array, around: Array, library: Array
) -> None:
    """A kernel called SendRecv inside `nccl:all_to_all` does an all-to-all."""
    names = list(words.names)
    column = spans.args.setdefault("operation", np.full(len(spans), -1, dtype=np.int64))
    for kernel, span in zip(kernels.tolist(), around.tolist(), strict=True):
        if column[kernel] < 0 and library[span]:
            column[kernel] = words.texts[names[spans.name[span]]]


def _write_ranks(spans: Spans, words: Vocabulary, header: dict[str, Any]) -> None:
    """Long lists of ranks are cut short in the trace ("[0, 1, 2, ...]"); its header has them."""
    column = spans.args.get("group_ranks")
    if column is None:
        column = spans.args["group_ranks"] = np.full(len(spans), -1, dtype=np.int64)
    groups, texts = _groups(header), list(words.texts)
    rows = np.flatnonzero(spans.kind == KIND["collective"])
    pairs, back = distinct([column[rows], spans.arg("group")[rows]])
    written = []
    for ranks, group in pairs:
        said = _ranks(texts[ranks].strip('"')) if ranks >= 0 else None
        if said is None and group >= 0:
            said = groups.get(texts[group].strip('"'))
        written.append(words.texts[json.dumps(said)] if said else -1)
    if written:
        column[rows] = np.array(written, dtype=np.int64)[back]


def _ranks(text: str) -> list[int] | None:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return None
    is_list = isinstance(found, list) and all(type(rank) is int for rank in found)
    return found if is_list else None


def _groups(header: dict[str, Any]) -> dict[str, list[int]]:
    """The ranks of each process group that the header describes."""
    info = header.get("distributedInfo")
    described = info.get("pg_config") if isinstance(info, dict) else None
    found = {}
    for group in described if isinstance(described, list) else []:
        if isinstance(group, dict):
            ranks = _ranks(json.dumps(group.get("ranks")))
            if ranks is not None:
                found[str(group.get("pg_name"))] = ranks
    return found
