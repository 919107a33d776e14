"""Texts in a block that repeat (tags) as numbers: each distinct one is decoded once."""

import os
from collections.abc import Callable

import numpy as np

from strobe.ingest.formats.xplane.wire import Block
from strobe.ingest.trace.codes import Array, Codes

# Odd and different in each process, so that no file can be made whose tags collide.
_FACTOR = np.uint64(int.from_bytes(os.urandom(8), "little") | 1)
_FOLD = np.uint64(32)


def _decoded(data: bytes) -> str:
    return data.decode("utf-8", "replace")


class Names:
    """Texts of one source on their way into the shared numbers, with a prefix before each."""

    def __init__(
        self, codes: Codes[str], prefix: str = "", decode: Callable[[bytes], str] = _decoded
    ) -> None:
        self._codes, self._prefix, self._decode = codes, prefix, decode
        self._known: dict[int, int] = {}

    def of(self, block: Block, starts: Array, ends: Array) -> Array:
        hashes, first, which = np.unique(
            _hashes(block, starts, ends), return_index=True, return_inverse=True
        )
        found = [
            self._code(number, block, int(starts[at]), int(ends[at]))
            for number, at in zip(hashes.tolist(), first.tolist(), strict=True)
        ]
        codes: Array = np.array(found, dtype=np.int32)[which]
        return codes

    def _code(self, number: int, block: Block, start: int, end: int) -> int:
        code = self._known.get(number)
        if code is None:
            text = self._prefix + self._decode(block.text(start, end))
            self._known[number] = code = self._codes[text]
        return code


def _hashes(block: Block, starts: Array, ends: Array) -> Array:
    sizes = ends - starts
    result = sizes.astype(np.uint64) * _FACTOR
    words = -(-sizes // 8)
    for number in range(int(words.max(initial=0))):
        rows = np.flatnonzero(words > number)
        word = block.words[starts[rows] + 8 * number]
        unused = np.maximum(8 - (sizes[rows] - 8 * number), 0).astype(np.uint64) * np.uint64(8)
        mixed = (result[rows] ^ (word << unused)) * _FACTOR
        result[rows] = mixed ^ (mixed >> _FOLD)
    return result
