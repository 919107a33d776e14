"""Which parameters of a model get gradients that no optimizer uses."""

from collections.abc import Iterable
from typing import Any

# A longer list of names would not help a reader.
_MOST_NAMES = 64


def untrained(module: Any, trained: set[int]) -> dict[str, Any] | None:
    """For a model that is partly trained (parameters by id): the number of other parameters that
    want gradients, the modules that consist of such, and those that consist of trained ones.

    None if all are trained, or none: an optimizer may hold copies, which have other ids.
    """
    owners: dict[str, set[bool]] = {}
    tensors = 0
    for name, parameter in module.named_parameters():
        if parameter.requires_grad:
            is_trained = id(parameter) in trained
            tensors += not is_trained
            for prefix in _prefixes(name):
                owners.setdefault(prefix, set()).add(is_trained)
    if not tensors or True not in set().union(*owners.values()):
        return None
    return {
        "tensors": tensors,
        "modules": _largest(name for name, found in owners.items() if found == {False}),
        "trained": _largest(name for name, found in owners.items() if found == {True}),
    }


def _prefixes(name: str) -> list[str]:
    """For a.b.weight: a, a.b, a.b.weight."""
    words = name.split(".")
    return [".".join(words[:count]) for count in range(1, len(words) + 1)]


def _largest(names: Iterable[str]) -> list[str]:
    """Those that are not inside another one of them."""
    found: list[str] = []
    for name in sorted(names, key=lambda name: name.count(".")):
        if len(found) == _MOST_NAMES:
            break
        if not any(name.startswith(f"{other}.") for other in found):
            found.append(name)
    return found
