"""Wrap text to a number of cells: a Chinese character is two cells wide and may end a line."""

import re
from collections.abc import Iterator

from rich.cells import cell_len

_WIDE = "\u2e80-\u9fff\uff00-\uffef"
# A word with the spaces before it, or one Chinese character with the punctuation that must not
# begin a line.
_PIECE = re.compile(rf"\s*(?:[^\s{_WIDE}]+|[{_WIDE}])[，。、；：！？）」』]*")


def wrapped(text: str, width: int, indent: str = "", hanging: str | None = None) -> list[str]:
    """Lines of at most `width` cells; `hanging` is the indent of all lines but the first."""
    return list(_lines(text, width, indent, indent if hanging is None else hanging))


def _lines(text: str, width: int, indent: str, hanging: str) -> Iterator[str]:
    line, cells, is_empty = indent, cell_len(indent), True
    for piece in _PIECE.findall(text.strip()):
        length = cell_len(piece)
        if not is_empty and cells + length > width:
            yield line
            line, cells, is_empty = hanging, cell_len(hanging), True
        if is_empty:
            piece = piece.lstrip()
            length = cell_len(piece)
        while cells + length > width and length > 1 and width > cells:  # longer than a line
            head, piece = _cut(piece, width - cells)
            yield line + head
            line, cells, length = hanging, cell_len(hanging), cell_len(piece)
        line += piece
        cells += length
        is_empty = False
    if not is_empty:
        yield line


def _cut(word: str, cells: int) -> tuple[str, str]:
    taken = 0
    for place, character in enumerate(word):
        taken += cell_len(character)
        if taken > cells:
            return word[: max(1, place)], word[max(1, place) :]
    return word, ""
