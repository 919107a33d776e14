"""What a notebook calls its cells, and what it is called itself.

A kernel compiles each cell under a file name of its own, `/tmp/ipykernel_12/3698143995.py`, which
says nothing to anybody; IPython knows which cell it was.
"""

import os
import re
import sys
from typing import Any

_CELL = re.compile(r"[/\\]ipykernel_\d+[/\\][^/\\]+\.py\Z|<ipython-input-(\d+)-")
UNKNOWN_CELL = "notebook cell"


def cell_of(file: str) -> str | None:
    """`In [3]` of a code object's file that is a cell; None of any other."""
    match = _CELL.search(file)
    if match is None:
        return None
    number = _number(file) or match.group(1)
    return f"In [{number}]" if number else UNKNOWN_CELL


def _number(file: str) -> int | None:
    try:
        # IPython tells a cell's number in tracebacks by the same table.
        number = _shell().compile._filename_map.get(file)
    except Exception:  # another IPython than those known
        return None
    return number if isinstance(number, int) else None


def _shell() -> Any:
    return sys.modules["IPython"].get_ipython()


def title() -> str | None:
    """What to call a notebook's kernel instead of its command line; None in any other process."""
    if "ipykernel" not in sys.modules:
        return None
    try:
        names = _shell().user_ns
    except Exception:
        names = {}
    # VS Code and JupyterLab tell the kernel where its notebook is; others do not.
    path = str(names.get("__vsc_ipynb_file__") or os.environ.get("JPY_SESSION_NAME", ""))
    return os.path.basename(path) if path.endswith(".ipynb") else "notebook"
