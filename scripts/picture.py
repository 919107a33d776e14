"""Draw docs/images/summary.svg: what `strobe demo` really prints in a terminal of 100 columns.

The demo runs in a pseudo-terminal; only the paths of the interpreter and the script are shortened.
"""

import fcntl
import io
import os
import pty
import re
import struct
import subprocess
import sys
import tempfile
import termios
from pathlib import Path

from rich._export_format import CONSOLE_SVG_FORMAT
from rich.console import Console
from rich.terminal_theme import MONOKAI
from rich.text import Text

from strobe import demo

TARGET = Path(__file__).resolve().parent.parent / "docs" / "images" / "summary.svg"
WIDTH = 100
# Fonts that the reader has: a picture must not fetch one from elsewhere.
FONTS = "ui-monospace, 'DejaVu Sans Mono', Menlo, Consolas, monospace"
_ESCAPE = re.compile(r"\x1b\[[0-9;]*m")


def main() -> int:
    with tempfile.TemporaryDirectory() as folder:
        printed = in_terminal([sys.executable, "-m", "strobe", "demo", "-o", "demo-run"], folder)
    lines = [shortened(line) for line in printed.splitlines()]
    shown = Text.from_ansi("\n".join(["$ strobe demo -o demo-run", *lines]).rstrip())
    console = Console(record=True, width=WIDTH + 1, file=io.StringIO())
    console.print(shown, no_wrap=True, crop=False)
    TARGET.parent.mkdir(parents=True, exist_ok=True)
    own_fonts = re.sub(r"@font-face \{\{.*?\}\}\s*", "", CONSOLE_SVG_FORMAT, flags=re.DOTALL)
    own_fonts = own_fonts.replace("Fira Code, monospace", FONTS)
    svg = console.export_svg(
        title="strobe demo", theme=MONOKAI, unique_id="strobe-demo", code_format=own_fonts
    )
    TARGET.write_text(
        "\n".join(line.rstrip() for line in svg.splitlines()) + "\n", encoding="utf-8"
    )
    return 0


def in_terminal(command: list[str], folder: str) -> str:
    """What a command writes to a terminal, stdout and stderr as they come."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 60, WIDTH, 0, 0))
    environment = {**os.environ, "TERM": "xterm-256color"}
    for name in ("NO_COLOR", "COLUMNS", "LINES"):
        environment.pop(name, None)
    process = subprocess.Popen(
        command, cwd=folder, env=environment, stdin=theirs, stdout=theirs, stderr=theirs
    )
    os.close(theirs)
    written = b""
    while True:
        try:
            piece = os.read(ours, 65536)
        except OSError:  # the other side is closed
            break
        if not piece:
            break
        written += piece
    os.close(ours)
    if process.wait():
        raise SystemExit(f"strobe demo failed:\n{written.decode(errors='replace')}")
    return written.decode().replace("\r\n", "\n")


def shortened(line: str) -> str:
    """The line without this machine's paths; what stands at its right edge stays there."""
    script = str(Path(demo.__file__).with_name("train.py"))
    plain = _ESCAPE.sub("", line)
    headline = re.match(r"(\S*python\S* .*?)  +(finished after .*)", plain)
    if headline is None:
        return line.replace(script, "train.py")
    ending = headline[2]
    return f"\x1b[1m{'python train.py'.ljust(WIDTH - len(ending))}\x1b[0m\x1b[32m{ending}\x1b[0m"


if __name__ == "__main__":
    sys.exit(main())
