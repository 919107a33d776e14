"""Paths to single arrays in a program's results or arguments, without examining all of them."""

import itertools
from collections.abc import Callable, Iterator
from typing import Any

# Whether a path follows an attribute, and its name; otherwise an index or a key.
_Step = tuple[bool, Any]
_Found = list[tuple[Any, Any]]


class Ways:
    def __init__(self, tree_util: Any, array_type: Any) -> None:
        self._leaves = tree_util.tree_leaves
        self._with_path = tree_util.tree_flatten_with_path
        self._array_type = array_type

    def found(self, tree: Any) -> _Found:
        """All arrays, with their paths."""
        kind = self._array_type
        return [(path, leaf) for path, leaf in self._with_path(tree)[0] if type(leaf) is kind]

    def way(self, tree: Any, found: _Found, place: int) -> Callable[[Any], Any]:
        """The path to the n-th array found in the tree; valid for similar trees, too."""
        path, leaf = found[place]
        walk = _walk(_followed(tree, path)[0])
        try:
            if walk(tree) is leaf:
                return walk
        # such an object cannot be indexed this way
        except (LookupError, AttributeError, TypeError):
            pass
        leaves, kind = self._leaves, self._array_type
        return lambda out: [leaf for leaf in leaves(out) if type(leaf) is kind][place]


def names_of(tree: Any, path: Any) -> tuple[str, ...]:
    return _followed(tree, path)[1]


def _followed(tree: Any, path: Any) -> tuple[list[_Step], tuple[str, ...]]:
    """The steps of a path, and the names along it, as far as they can be followed."""
    steps: list[_Step] = []
    names: tuple[str, ...] = ()
    listed: list[tuple[str, ...]] = []
    for key in path:
        step = _step(key)
        if step is None:
            break
        is_listed = not step[0] and type(tree) is list and len(tree) == len(listed)
        names += listed[step[1]] if is_listed else (str(step[1]),)
        steps.append(step)
        listed = names_in_nnx(getattr(tree, "_graphdef", None)) or listed
        tree = _follow(tree, step)
    return steps, names


def names_in_nnx(graphdef: Any) -> list[tuple[str, ...]]:
    """Names of the arrays of a flax.nnx object.

    flax.nnx passes its objects as a plain list of arrays, and separately their structure: nodes in
    the order of a traversal, and the attributes of those in the same order.
    """
    nodes = iter(getattr(graphdef, "nodes", ()))
    attributes = iter(getattr(graphdef, "attributes", ()))

    def walk(path: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
        node = next(nodes, None)
        if node is None or type(node).__name__ == "NodeRef":
            return
        if not hasattr(node, "num_attributes"):  # a variable
            yield path
            return
        for name, kind in itertools.islice(attributes, node.num_attributes):
            here = (*path, str(name))
            if type(kind).__name__ == "NodeAttr":
                yield from walk(here)
            elif type(kind).__name__ == "LeafAttr":
                yield here

    return list(walk(()))


def _step(key: Any) -> _Step | None:
    for name, is_attribute in (("idx", False), ("name", True)):
        if hasattr(key, name):
            return is_attribute, getattr(key, name)
    # A flattened index has a key too, but it is not an index of the object itself.
    return (False, key.key) if type(key).__name__ == "DictKey" else None


def _follow(tree: Any, step: _Step) -> Any:
    is_attribute, key = step
    try:
        return getattr(tree, key) if is_attribute else tree[key]
    except (LookupError, AttributeError, TypeError):
        return None


def _walk(steps: list[_Step]) -> Callable[[Any], Any]:
    if not steps:
        return lambda out: out
    if len(steps) == 1 and not steps[0][0]:
        index = steps[0][1]
        return lambda out: out[index]

    def walk(out: Any) -> Any:
        for is_attribute, key in steps:
            out = getattr(out, key) if is_attribute else out[key]
        return out

    return walk
