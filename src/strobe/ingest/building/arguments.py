"""The typed argument tables of a rank: operators, kernels, collectives."""

import functools
from typing import Any, NamedTuple

import numpy as np

from strobe.frameworks.families import family_of
from strobe.ingest.building import flops, shapes
from strobe.ingest.building.precision import precision_of
from strobe.ingest.formats import collective_names, copy_directions
from strobe.ingest.formats.kinds import KIND
from strobe.ingest.trace.codes import Array, Codes, distinct, occurring, strings
from strobe.ingest.trace.spans import Spans, Vocabulary
from strobe.store.nullable import Nullable
from strobe.store.strings import Strings


def op_args(spans: Spans, parent: Array, is_backward: Array, words: Vocabulary) -> dict[str, Any]:
    """One row per operator; each distinct (name, shapes, types, values) is processed once."""
    rows = np.flatnonzero(spans.kind == KIND["op"])
    texts, names = list(words.texts), list(words.names)
    columns = ("dims", "dtypes", "concrete")
    kinds, back = distinct([spans.name[rows], *(spans.arg(c)[rows] for c in columns)])
    made, touched, work = Codes[str](), [], []
    made_codes = []
    for name, *codes in kinds:
        judged = _judged(names[name], *(texts[c] if c >= 0 else None for c in codes))
        made_codes.append(-1 if judged.outputs is None else made[judged.outputs])
        touched.append(judged.bytes)
        work.append(judged.flops)
    whole_work = np.full(len(spans), -1, dtype=np.int64)
    whole_work[rows] = _given_or(spans.arg("flops")[rows], _picked(work, back))
    once = flops.counted_once(whole_work, parent)[rows]
    return {
        "event_id": rows,
        "input_shapes": strings(spans.arg("dims")[rows], texts),
        "input_dtypes": strings(spans.arg("dtypes")[rows], texts),
        "output_shapes": strings(
            _given_or(_told(spans.arg("outputs")[rows], texts, made), _picked(made_codes, back)),
            made,
        ),
        "concrete_inputs": strings(spans.arg("concrete")[rows], texts),
        # A source's own count is complete: only the derived one may be counted twice.
        "flops": _known(_given_or(spans.arg("flops")[rows], once)),
        "bytes": _known(_given_or(spans.arg("bytes")[rows], _picked(touched, back))),
        "sequence": _known(spans.arg("sequence")[rows]),
        "is_backward": is_backward[rows],
        "node": strings(spans.arg("node")[rows], texts),
        "call": _known(spans.arg("call")[rows]),
        "family": _families(spans.name[rows], spans.arg("node")[rows], names, texts),
    }


def _families(name: Array, node: Array, names: list[str], texts: list[str]) -> Strings:
    """Each distinct pair of an operator's name and its name in a graph is decided once."""
    pairs, back = distinct([name, node])
    found = [family_of(names[n], texts[code] if code >= 0 else None) for n, code in pairs]
    return _texts([family or "" for family in found], back)


class _Judged(NamedTuple):
    outputs: str | None
    bytes: int
    flops: int


@functools.lru_cache(maxsize=1 << 16)  # the same ones recur in every slice of time
def _judged(
    name: str, dims_text: str | None, dtypes_text: str | None, concrete_text: str | None
) -> _Judged:
    dims, dtypes, concrete = _parsed(dims_text, dtypes_text, concrete_text)
    out = shapes.outputs(name, dims, concrete) if dims else None
    return _Judged(
        None if out is None else str(out),
        _stored(shapes.bytes_touched(dims, dtypes, out)),
        _stored(flops.flops(name, dims, concrete)),
    )


def kernel_args(spans: Spans, words: Vocabulary) -> dict[str, Any]:
    kinds = [KIND[kind] for kind in ("kernel", "memcpy", "memset", "collective")]
    rows = np.flatnonzero((spans.arg("on_device") > 0) & np.isin(spans.kind, kinds))
    texts = list(words.texts)
    occupancy = spans.arg("occupancy")[rows]
    return {
        "event_id": rows,
        "stream": _known(spans.arg("stream")[rows]),
        "grid": strings(spans.arg("grid")[rows], texts),
        "block": strings(spans.arg("block")[rows], texts),
        "bytes": _known(spans.arg("bytes")[rows]),
        **copy_directions.way(spans, rows, words),
        "registers": _known(spans.arg("registers")[rows]),
        "shared_memory_bytes": _known(spans.arg("shared_memory")[rows]),
        "occupancy_ratio": Nullable(occupancy / 100, occupancy < 0),
        "precision": _precisions(spans.name[rows], list(words.names)),
    }


def _precisions(names: Array, texts: list[str]) -> Strings:
    """By the names of kernels; each is processed once."""
    distinct_names, back = occurring(names)
    return _texts([precision_of(texts[name]) for name in distinct_names.tolist()], back)


def collective_args(spans: Spans, words: Vocabulary) -> dict[str, Any]:
    """One row per collective; each distinct combination of names and types is processed once."""
    rows = np.flatnonzero(spans.kind == KIND["collective"])
    names, texts = list(words.names), list(words.texts)
    told = ("operation", "dtype", "dims", "dtypes", "algorithm", "protocol")
    keys, back = distinct([spans.name[rows], *(spans.arg(name)[rows] for name in told)])
    found = [
        collective_names.judged(
            collective_names.Told(names[name], *(_unquoted(texts, c) for c in codes))
        )
        for name, *codes in keys
    ]
    size = _picked([judged.element_bytes for judged in found], back)
    derived = _picked([_stored(judged.bytes) for judged in found], back)
    sent = _given_or(spans.arg("bytes")[rows], _times(spans.arg("elements")[rows], size))
    received = _times(spans.arg("out_elements")[rows], size)
    return {
        "event_id": rows,
        "operation": _texts([judged.operation for judged in found], back),
        "group": _unquoted_column(spans.arg("group")[rows], texts),
        "group_size": _known(spans.arg("group_size")[rows]),
        "bytes": _known(_given_or(sent, derived)),
        "dtype": _texts([judged.dtype for judged in found], back),
        "group_ranks": _unquoted_column(spans.arg("group_ranks")[rows], texts),
        "received_bytes": _known(_given_or(spans.arg("received_bytes")[rows], received)),
        "algorithm": _texts([judged.algorithm for judged in found], back),
        "protocol": _texts([judged.protocol for judged in found], back),
    }


def _times(elements: Array, size: Array) -> Array:
    """Bytes of elements; -1 if their number or size is unknown, or too large."""
    known = (elements >= 0) & (size > 0) & (elements < 2**58)
    return np.where(known, np.where(known, elements, 0) * size, -1)


def _texts(values: list[str], back: Array) -> Strings:
    codes = Codes[str]()
    return strings(_picked([codes[v] if v else -1 for v in values], back), codes)


def _unquoted(texts: list[str], code: int) -> str:
    """Recorded text is JSON, so a name comes in quotes."""
    return texts[code].strip('"') if code >= 0 else ""


def _unquoted_column(column: Array, texts: list[str]) -> Strings:
    distinct, back = occurring(column)
    return _texts([_unquoted(texts, code) for code in distinct.tolist()], back)


def _parsed(
    dims: str | None, dtypes: str | None, concrete: str | None
) -> tuple[list[Any], list[Any], list[Any]]:
    return shapes.parsed_shapes(dims), shapes.parsed(dtypes), shapes.parsed(concrete)


def _stored(number: int | None) -> int:
    """-1 for unknown values, and for those that no column can store."""
    return number if number is not None and number < 2**63 else -1


def _known(column: Array) -> Any:
    return Nullable(column, column < 0)


def _given_or(given: Array, derived: Array) -> Array:
    return np.where(given >= 0, given, derived)


def _told(column: Array, texts: list[str], codes: Codes[str]) -> Array:
    """Recorded texts as numbers of another vocabulary."""
    distinct, back = occurring(column)
    return _picked([codes[texts[c]] if c >= 0 else -1 for c in distinct.tolist()], back)


def _picked(values: list[int], back: Array) -> Array:
    return np.array(values, dtype=np.int64)[back] if values else np.zeros(0, dtype=np.int64)
