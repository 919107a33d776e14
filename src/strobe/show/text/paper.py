"""Where text for a person goes: a terminal with colours, or a plain file or pipe."""

import os
import shutil
from typing import TextIO

from strobe.show.text.wrapping import wrapped

# A line is pieces of text, each with a style that only a terminal shows.
Line = list[tuple[str, str]]

# Readable in a wide editor, and what most tables need; a pipe has no width of its own.
PIPE_WIDTH = 160
NARROWEST = 40


class Paper:
    def __init__(
        self, out: TextIO, width: int | None = None, is_terminal: bool | None = None
    ) -> None:
        self.out = out
        self.is_terminal = out.isatty() if is_terminal is None else is_terminal
        self.width = max(NARROWEST, width or _width_of(self.is_terminal))
        self._has_colour = self.is_terminal and not os.environ.get("NO_COLOR")
        self._has_colour &= os.environ.get("TERM") != "dumb"

    def write(self, line: Line) -> None:
        """A line; spaces at its end are not written."""
        if self._has_colour:
            self.out.write(_coloured(line) + "\n")
        else:
            self.out.write("".join(text for text, _ in line).rstrip() + "\n")

    def write_wrapped(self, text: str, style: str = "", indent: str = "") -> None:
        for line in wrapped(text, self.width, indent):
            self.write([(line, style)])

    def bar(self, ratio: float, width: int) -> str:
        """A bar to scale; plain characters on plain paper."""
        return bar(ratio, width) if self.is_terminal else ("#" * round(ratio * width)).ljust(width)

    def blank(self) -> None:
        self.out.write("\n")


def bar(ratio: float, width: int) -> str:
    """A bar to an eighth of a cell, padded to its width; what is not nothing shows."""
    eighths = round(min(max(ratio, 0.0), 1.0) * width * 8)
    if ratio > 0:
        eighths = max(1, eighths)
    whole, rest = divmod(eighths, 8)
    return ("█" * whole + (" ▏▎▍▌▋▊▉"[rest] if rest else "")).ljust(width)


def _width_of(is_terminal: bool) -> int:
    fallback = 80 if is_terminal else PIPE_WIDTH
    return shutil.get_terminal_size((fallback, 24)).columns if is_terminal else _columns(fallback)


def _columns(fallback: int) -> int:
    given = os.environ.get("COLUMNS", "")
    return int(given) if given.isdigit() and int(given) else fallback


def _coloured(line: Line) -> str:
    from rich.style import Style

    while line and not line[-1][0].strip():
        line = line[:-1]
    if line:
        line = [*line[:-1], (line[-1][0].rstrip(), line[-1][1])]
    return "".join(Style.parse(style).render(text) if style else text for text, style in line)
