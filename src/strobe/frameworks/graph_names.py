"""Names of operators in compiled graphs, which tell what each was compiled from.

jit(train_step)/jvp(Net)/svd (train.py:7) is a singular value decomposition of the line train.py:7,
Default/network-Net/Sort-op3 a sort.
"""

import functools
import re
from typing import NamedTuple

_NODE = re.compile(
    r"(?P<scopes>.*)/(?P<primitive>\w+)(?:-op\d+)?(?: \((?P<place>[^()]*:\d+)\))?", re.DOTALL
)
# The primitive or gradient that an operator is part of: Net/Grad_Sort/TopK-op0,
# jit(train_step)/transpose(jvp(jit(svd)))/dot_general.
_ENCLOSING = re.compile(r"(?:\bGrad_|\bjit\()(\w+)")

# A copy that a compiler added to a program, which only has the program as path: jit_step/copy.5.
ADDED_COPY = r"/copy[.0-9]*$"
_ADDED_COPY = re.compile(r"jit_(?P<program>.+)/copy(\.\d+)?")


class GraphName(NamedTuple):
    """An operator of a compiled graph."""

    scopes: str
    primitive: str
    place: str | None  # the line that it was compiled from: train.py:7

    @property
    def enclosing(self) -> list[str]:
        """What it is part of, the outermost first: functions, primitives and their gradients."""
        return _ENCLOSING.findall(self.scopes)


@functools.lru_cache(maxsize=1 << 16)
def graph_name(node: str) -> GraphName | None:
    """None if this is not the name of an operator in a graph."""
    match = _NODE.fullmatch(node)
    return GraphName(match["scopes"], match["primitive"], match["place"]) if match else None


def copying_program(node: str) -> str | None:
    """The program that a compiler added this copy to; None if it is not such a copy."""
    match = _ADDED_COPY.fullmatch(node)
    return match["program"] if match else None


def paths_of(program: str) -> tuple[str, str]:
    """The beginnings of the names of a program's operators: added ones, and all others."""
    return f"jit_{program}/", f"jit({program})/"
