"""Calls of modules in a trace with Python stacks, which calls each module by its class and number.

`nn.Module: Linear_3` is the fourth Linear that was seen, always the same one. Its path is that of
the module it was called in, and its own name: `ResNet_0.Sequential_1.BasicBlock_2.Linear_3`. The
names of the attributes are not in the trace.
"""

import re

import numpy as np

from strobe.ingest.building import nesting
from strobe.ingest.formats.kinds import KIND
from strobe.ingest.trace import spans as spans_of
from strobe.ingest.trace.codes import Array, occurring
from strobe.ingest.trace.spans import Spans, Vocabulary

_MODULE = re.compile(r"nn\.Module: (.+)\Z", re.DOTALL)
_NUMBER = re.compile(r"_\d+\Z")
_DEEPEST = 200


class Modules:
    """The module calls of a trace that is read in pieces; what they lie in may be in any piece."""

    def __init__(self, words: Vocabulary) -> None:
        self._words = words
        self._calls: list[Spans] = []

    def taken_from(self, spans: Spans) -> Spans:
        """Keeps the calls of modules; the other spans of a piece."""
        names = list(self._words.names)
        numbers = [i for i in occurring(spans.name)[0].tolist() if _MODULE.match(names[i])]
        is_call = np.isin(spans.name, numbers) & (spans.kind == KIND["python"])
        if not is_call.any():
            return spans
        self._calls.append(spans.take(np.flatnonzero(is_call)))
        return spans.take(np.flatnonzero(~is_call))

    def named(self) -> Spans:
        """All calls, as events of their kind, with a path and the name of a class."""
        calls = spans_of.joined(self._calls)
        names = list(self._words.names)
        around = nesting.parents(calls.track, calls.ts_ns, calls.dur_ns)
        caller = _callers(calls.name, around)
        modules, back = occurring(calls.name)
        paths = [_path(module, caller, names) for module in modules.tolist()]
        classes = [_NUMBER.sub("", _own_name(names[module])) for module in modules.tolist()]
        if len(calls):
            calls.args["module"] = self._words.scopes.of(paths)[back]
            calls.name = self._words.names.of(classes)[back]
        calls.kind = np.full(len(calls), KIND["module"], dtype=np.int32)
        return calls


def _callers(name: Array, around: Array) -> dict[int, int]:
    """A module lies below the first other module that was seen to call it.

    A call without a module around it is a root, or a part that was called again by itself, as
    when its forward pass is repeated during backward.
    """
    inside = np.flatnonzero(around >= 0)
    inside = inside[name[around[inside]] != name[inside]]
    children, first = np.unique(name[inside], return_index=True)
    return dict(zip(children.tolist(), name[around[inside[first]]].tolist(), strict=True))


def _path(module: int, caller: dict[int, int], names: list[str]) -> str:
    parts, seen = [_own_name(names[module])], {module}
    while (module := caller.get(module, -1)) >= 0 and module not in seen and len(seen) < _DEEPEST:
        seen.add(module)
        parts.append(_own_name(names[module]))
    return ".".join(reversed(parts))


def _own_name(name: str) -> str:
    """A dot would look like another level of the path."""
    found = _MODULE.match(name)
    return (found.group(1) if found else name).replace(".", "_")
