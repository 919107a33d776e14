"""The names behind the numbers in the trace of one window: modules, and names of the user's."""

import functools
import weakref
from typing import Any

_NEEDS_TOKEN = frozenset('"\\')


class Names:
    """Numbers for modules and tokens for names, assigned when they are first seen."""

    def __init__(self, labels: dict[int, str]) -> None:
        """`labels`, by the id of a module, is filled for callers that need a fast lookup."""
        self.modules: dict[int, dict[str, str]] = {}
        self.names: dict[str, str] = {}
        self._labels = labels
        self._alive: dict[int, Any] = {}
        self._tokens: dict[str, str] = {}

    def label(self, module: Any) -> str:
        """The name of a module's calls in the trace."""
        if id(module) not in self._labels:
            self._add_tree(module)
        return self._labels[id(module)]

    def end(self) -> None:
        """No more labels are looked up: a later module may have the id of a deleted one."""
        self._labels.clear()
        self._alive.clear()

    def _add_tree(self, root: Any) -> None:
        """A module not seen before is a root: its submodules are named relative to it."""
        for path, module in root.named_modules():
            key = id(module)
            if key not in self._labels:
                number = len(self.modules) + 1
                self._labels[key] = f"strobe:{number}"
                self._alive[key] = weakref.ref(module, functools.partial(self._forget, key))
                self.modules[number] = {
                    "path": f"{_class_name(root)}.{path}" if path else _class_name(root),
                    "class": _class_name(module),
                }

    def _forget(self, key: int, _: Any) -> None:
        self._labels.pop(key, None)
        self._alive.pop(key, None)

    def plain(self, name: Any) -> Any:
        """A name that torch.profiler preserves, or a token for one that it would not."""
        if not isinstance(name, str) or _is_plain(name):
            return name
        token = self._tokens.get(name)
        if token is None:
            token = self._tokens[name] = f"strobe#{len(self._tokens) + 1}"
            self.names[token] = name
        return token

    def to_json(self) -> dict[str, Any]:
        return {"modules": self.modules, "names": self.names}


def _is_plain(name: str) -> bool:
    """Nor one that looks like a number of ours, nor an empty one, which torch leaves out."""
    is_ours = name.startswith("strobe") or not name
    return (
        name.isascii()
        and name.isprintable()
        and not is_ours
        and not _NEEDS_TOKEN.intersection(name)
    )


def _class_name(module: Any) -> str:
    return type(module).__name__
