"""The names that users know of notebooks and their cells.

A kernel compiles each cell under a file name of its own, `/tmp/ipykernel_12/3698143995.py`, which
means nothing to a user; IPython knows which cell it was.
"""

import os
import re
import sys
from typing import Any

_CELL = re.compile(r"[/\\]ipykernel_\d+[/\\][^/\\]+\.py\Z|<ipython-input-(\d+)-")
UNKNOWN_CELL = "notebook cell"


def cell_of(file: str) -> str | None:
    """`In [3]` for the file of a code object that is a cell; None for any other."""
    match = _CELL.search(file)
    if match is None:
        return None
    number = _number(file) or match.group(1)
    return f"In [{number}]" if number else UNKNOWN_CELL


def _number(file: str) -> int | None:
    try:
        # IPython gets the cell numbers in tracebacks from the same table.
        number = _shell().compile._filename_map.get(file)
    except Exception:  # an unknown version of IPython
        return None
    return number if isinstance(number, int) else None


def _shell() -> Any:
    return sys.modules["IPython"].get_ipython()


def title() -> str | None:
    """What to show instead of the command line of a notebook's kernel; None in any other
    process.
    """
    if "ipykernel" not in sys.modules:
        return None
    try:
        names = _shell().user_ns
    except Exception:
        names = {}
    # VS Code and JupyterLab pass the notebook's path to the kernel; others do not.
    path = str(names.get("__vsc_ipynb_file__") or os.environ.get("JPY_SESSION_NAME", ""))
    return os.path.basename(path) if path.endswith(".ipynb") else "notebook"
