"""What collectives are called by the libraries that do them, in one set of words."""

import re
from typing import NamedTuple

from strobe.ingest.building import shapes

_OPERATION_IN_NAME = re.compile(
    r"(all_?reduce|all_?gather|reduce_?scatter|all_?to_?all|broadcast|send_?recv|barrier|reduce"
    r"|gather|scatter|send|recv)",
    re.IGNORECASE,
)
_OPERATIONS = {
    "allreduce": "all_reduce", "allgather": "all_gather", "reducescatter": "reduce_scatter",
    "alltoall": "all_to_all", "sendrecv": "send_recv",
}  # fmt: skip
# ncclDevKernel_AllReduce_Sum_f32_RING_LL(...), ncclKernel_SendRecv_RING_SIMPLE_Sum_int8_t(...)
_ALGORITHM = re.compile(r"_(RING|TREE|COLLNET_DIRECT|COLLNET_CHAIN|NVLS_TREE|NVLS|PAT)(?=_|\b)")
_PROTOCOL = re.compile(r"_(LL128|LL|SIMPLE)(?=_|\b)")
# As NCCL's arguments name them; those of operators are in shapes.
_BYTES_OF_DTYPE = {
    "float": 4, "double": 8, "half": 2, "bfloat16": 2, "int": 4, "long": 8, "byte": 1, "char": 1,
    "bool": 1, "short": 2, "complexfloat": 8, "complexdouble": 16, "float8_e4m3fn": 1,
    "float8_e5m2": 1, "float8_e4m3fnuz": 1, "float8_e5m2fnuz": 1, "uint16": 2, "uint32": 4,
    "uint64": 8,
}  # fmt: skip


class Told(NamedTuple):
    """What a trace says of a collective, as text; empty where it does not."""

    name: str
    operation: str
    dtype: str
    dims: str
    dtypes: str
    algorithm: str
    protocol: str


class Judged(NamedTuple):
    operation: str
    dtype: str
    element_bytes: int  # 0 where unknown
    bytes: int  # by the shapes of its inputs; -1 where unknown
    algorithm: str
    protocol: str


def judged(told: Told) -> Judged:
    dims, dtypes = shapes.parsed_shapes(told.dims), shapes.parsed(told.dtypes)
    dtype = told.dtype or next((str(d) for d in dtypes if d and d != "TensorList"), "")
    given = shapes.bytes_touched(dims, dtypes, None)
    return Judged(
        operation_of(told.operation or told.name), dtype, _BYTES_OF_DTYPE.get(dtype.lower(), 0),
        -1 if given is None else given, told.algorithm or _word(_ALGORITHM, told.name),
        told.protocol or _word(_PROTOCOL, told.name),
    )  # fmt: skip


def operation_of(name: str) -> str:
    """all_reduce, whatever the library calls it: gloo:all_reduce, ncclDevKernel_AllReduce_Sum."""
    found = _OPERATION_IN_NAME.search(name)
    word = found.group(1).lower().replace("_", "") if found else ""
    return _OPERATIONS.get(word, word) or name or "unknown"


def _word(pattern: re.Pattern[str], name: str) -> str:
    found = pattern.search(name.split("(")[0])
    return found.group(1).lower() if found else ""
