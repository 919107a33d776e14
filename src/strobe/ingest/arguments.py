"""The typed argument tables of a rank: operators, kernels, collectives."""

import re
from collections.abc import Callable
from typing import Any

import numpy as np

from strobe.ingest import flops, shapes
from strobe.ingest.classify import KIND
from strobe.ingest.codes import Array, Codes, strings
from strobe.ingest.spans import Spans, Vocabulary

_OPERATION_IN_NAME = re.compile(
    r"(all_?reduce|all_?gather|reduce_?scatter|all_?to_?all|broadcast|send_?recv|barrier|reduce"
    r"|gather|scatter|send|recv)",
    re.IGNORECASE,
)
_OPERATIONS = {
    "allreduce": "all_reduce", "allgather": "all_gather", "reducescatter": "reduce_scatter",
    "alltoall": "all_to_all", "sendrecv": "send_recv",
}  # fmt: skip
# As NCCL's arguments name them; those of operators are in shapes.
_BYTES_OF_DTYPE = {
    "float": 4, "double": 8, "half": 2, "bfloat16": 2, "int": 4, "long": 8, "byte": 1, "char": 1,
    "bool": 1, "short": 2,
}  # fmt: skip


def op_args(spans: Spans, parent: Array, is_backward: Array, words: Vocabulary) -> dict[str, Any]:
    """One row for each operator; each distinct (name, shapes, types, values) is judged once."""
    rows = np.flatnonzero(spans.kind == KIND["op"])
    texts, names = list(words.texts), list(words.names)
    columns = ("dims", "dtypes", "concrete")
    keys = np.stack([spans.name[rows], *(spans.arg(c)[rows] for c in columns)], axis=1)
    distinct, back = np.unique(keys, axis=0, return_inverse=True)
    back = back.reshape(-1)
    made, touched, work = Codes[str](), [], []
    made_codes = []
    for name, *codes in distinct.tolist():
        dims, dtypes, concrete = _parsed(*(texts[c] if c >= 0 else None for c in codes))
        out = shapes.outputs(names[name], dims, concrete) if dims else None
        made_codes.append(-1 if out is None else made[str(out)])
        touched.append(_stored(shapes.bytes_touched(dims, dtypes, out)))
        work.append(_stored(flops.flops(names[name], dims, concrete)))
    whole_work = np.full(len(spans), -1, dtype=np.int64)
    whole_work[rows] = _given_or(spans.arg("flops")[rows], _picked(work, back))
    once = flops.counted_once(whole_work, parent)[rows]
    return {
        "event_id": rows,
        "input_shapes": strings(spans.arg("dims")[rows], texts),
        "input_dtypes": strings(spans.arg("dtypes")[rows], texts),
        "output_shapes": strings(_picked(made_codes, back), made),
        "concrete_inputs": strings(spans.arg("concrete")[rows], texts),
        "flops": _known(once),
        "bytes": _known(_given_or(spans.arg("bytes")[rows], _picked(touched, back))),
        "sequence": _known(spans.arg("sequence")[rows]),
        "is_backward": is_backward[rows],
    }


def kernel_args(spans: Spans, words: Vocabulary) -> dict[str, Any]:
    rows = np.flatnonzero((spans.arg("on_device") > 0) & (spans.kind != KIND["annotation"]))
    texts = list(words.texts)
    return {
        "event_id": rows,
        "stream": _known(spans.arg("stream")[rows]),
        "grid": strings(spans.arg("grid")[rows], texts),
        "block": strings(spans.arg("block")[rows], texts),
        "bytes": _known(spans.arg("bytes")[rows]),
    }


def collective_args(spans: Spans, words: Vocabulary) -> dict[str, Any]:
    rows = np.flatnonzero(spans.kind == KIND["collective"])
    texts, names = list(words.texts), list(words.names)
    operations, groups, dtypes = Codes[str](), Codes[str](), Codes[str]()
    columns: dict[str, list[int]] = {"operation": [], "group": [], "bytes": [], "dtype": []}
    for row in rows.tolist():
        read = _reader(spans, row, texts)
        columns["operation"].append(
            operations[operation_of(read("operation") or names[spans.name[row]])]
        )
        group = read("group")
        columns["group"].append(groups[group] if group else -1)
        dtype = read("dtype") or next((str(d) for d in shapes.parsed(read("dtypes")) if d), "")
        columns["dtype"].append(dtypes[dtype] if dtype else -1)
        columns["bytes"].append(_collective_bytes(spans, row, read))
    column = {name: np.array(values, dtype=np.int64) for name, values in columns.items()}
    return {
        "event_id": rows,
        "operation": strings(column["operation"], operations),
        "group": strings(column["group"], groups),
        "group_size": _known(spans.arg("group_size")[rows]),
        "bytes": _known(column["bytes"]),
        "dtype": strings(column["dtype"], dtypes),
    }


def operation_of(name: str) -> str:
    """all_reduce, whatever the library calls it: gloo:all_reduce, ncclDevKernel_AllReduce_Sum."""
    found = _OPERATION_IN_NAME.search(name)
    word = found.group(1).lower().replace("_", "") if found else ""
    return _OPERATIONS.get(word, word) or name


def _reader(spans: Spans, row: int, texts: list[str]) -> Callable[[str], str]:
    def read(name: str) -> str:
        code = int(spans.args[name][row]) if name in spans.args else -1
        return texts[code].strip('"') if code >= 0 else ""

    return read


def _collective_bytes(spans: Spans, row: int, read: Callable[[str], str]) -> int:
    if (given := int(spans.arg("bytes")[row])) >= 0:
        return given
    elements = int(spans.arg("elements")[row])
    if elements >= 0 and read("dtype").lower() in _BYTES_OF_DTYPE:
        return _stored(elements * _BYTES_OF_DTYPE[read("dtype").lower()])
    dims, dtypes, _ = _parsed(read("dims"), read("dtypes"), None)
    return _stored(shapes.bytes_touched(dims, dtypes, None))


def _parsed(
    dims: str | None, dtypes: str | None, concrete: str | None
) -> tuple[list[Any], list[Any], list[Any]]:
    return shapes.parsed_shapes(dims), shapes.parsed(dtypes), shapes.parsed(concrete)


def _stored(number: int | None) -> int:
    """-1 for what is unknown, and for what no column can hold."""
    return number if number is not None and number < 2**63 else -1


def _known(column: Array) -> Any:
    return np.ma.masked_array(column, mask=column < 0)


def _given_or(given: Array, derived: Array) -> Array:
    return np.where(given >= 0, given, derived)


def _picked(values: list[int], back: Array) -> Array:
    return np.array(values, dtype=np.int64)[back] if values else np.zeros(0, dtype=np.int64)
