"""What stands behind the numbers in the trace of one window: modules, and names of the user's."""

import weakref
from typing import Any

_NEEDS_TOKEN = frozenset('"\\')


class Names:
    """Numbers for modules and tokens for names, given out on first sight."""

    def __init__(self) -> None:
        self.modules: dict[int, dict[str, str]] = {}
        self.names: dict[str, str] = {}
        # By id, with a weak reference that tells a module from a later one at the same address.
        self.labels: dict[int, tuple[Any, str]] = {}
        self._tokens: dict[str, str] = {}

    def label(self, module: Any) -> tuple[Any, str]:
        """The name under which a module's calls stand in the trace, behind its weak reference."""
        known = self.labels.get(id(module))
        if known is None or known[0]() is not module:
            self._add_tree(module)
        return self.labels[id(module)]

    def _add_tree(self, root: Any) -> None:
        """A module not seen before is a root: its parts are named below it."""
        for path, module in root.named_modules():
            known = self.labels.get(id(module))
            if known is None or known[0]() is not module:
                number = len(self.modules) + 1
                self.labels[id(module)] = (weakref.ref(module), f"strobe:{number}")
                self.modules[number] = {
                    "path": f"{_class_name(root)}.{path}" if path else _class_name(root),
                    "class": _class_name(module),
                }

    def plain(self, name: Any) -> Any:
        """A name that torch.profiler keeps as it is, or a token for one that it would not."""
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
    """Also not one that looks like a number of ours, and not empty, which torch leaves out."""
    is_ours = name.startswith("strobe") or not name
    return (
        name.isascii()
        and name.isprintable()
        and not is_ours
        and not _NEEDS_TOKEN.intersection(name)
    )


def _class_name(module: Any) -> str:
    return type(module).__name__
