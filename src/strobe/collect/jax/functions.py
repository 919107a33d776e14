"""The user's function inside what jax made of it: its name, code and arguments.

jax.jit and partial functions hold what they wrap in an accessible place. jax.pmap consists of
jax.jit and shard_map around a function of its own, which has the script's in its closure and gets a
flat list of arrays. Ahead-of-time compiled functions only have the name.
"""

import functools
from types import FunctionType
from typing import Any, NamedTuple

# Maximum number of nested wrappers to unwrap.
_DEEPEST = 32
# Packages whose compiled functions are operations, not programs of the script.
_OPERATIONS = ("jax", "jaxlib", "optax")
_PMAP = "jax._src.pmap"


class Written(NamedTuple):
    """A function of the script."""

    name: str
    # the same for functions that are created from the same code again and again
    key: tuple[Any, ...]


def classes(jax: Any) -> list[Any]:
    """The classes of everything that jax compiles and a script calls."""
    found = [type(jax.jit(_nothing)), jax.stages.Compiled]
    mapped = type(jax.pmap(_nothing))
    # Before jax 0.8 it is a class of its own.
    return found if mapped is FunctionType else [*found, mapped]


def innermost(function: Any) -> Any:
    """The user's function inside wrappers and partial functions."""
    for _ in range(_DEEPEST):
        inside = getattr(function, "__wrapped__", None)
        if isinstance(function, functools.partial):
            inside = function.func
        elif inside is None:
            inside = getattr(_of_pmap(function).get("fun"), "f", None)
        if inside is None:
            break
        function = inside
    return function


def written(function: Any) -> Written | None:
    """None if it is one of jax's own operations."""
    ahead = getattr(getattr(function, "_executable", None), "unsafe_call", None)
    if ahead is not None:
        name = plain_name(str(getattr(ahead, "name", "a function")))
        return Written(name, (name, "ahead of time"))
    inner = innermost(function)
    module = getattr(inner, "__module__", None) or type(inner).__module__
    if str(module).split(".")[0] in _OPERATIONS:
        return None
    return named(str(getattr(given(function)[0], "__name__", "a function")), inner)


def named(name: str, inner: Any) -> Written:
    code = getattr(inner, "__code__", None)
    place = (code.co_filename, code.co_firstlineno) if code is not None else id(inner)
    return Written(name, (name, place))


def plain_name(name: str) -> str:
    """The plain name in jax's name for a compiled function: jit(train_step)."""
    return name.removeprefix("jit(").removesuffix(")")


def given(function: Any, args: Any = (), kwargs: Any = None) -> tuple[Any, Any, Any]:
    """A function and its arguments, as the script has written them."""
    inside = getattr(function, "__wrapped__", None)
    own = _of_pmap(getattr(inside, "__wrapped__", None))
    if "fun" not in own:
        return function, args, kwargs or {}
    mapped = own["fun"].f
    if isinstance(mapped, functools.partial) and not hasattr(mapped, "__name__"):
        mapped = mapped.func
    if not args:
        return mapped, args, {}
    return mapped, *own["in_tree"].unflatten(args)


def passed_on(function: Any, args: Any, kwargs: Any) -> dict[int, int]:
    """For a function that was just called: which of its results are arguments, by position.

    jax has cached the trace of the call, so the function does not run again.
    """
    from jax.tree_util import tree_leaves

    traced = function.trace(*args, **kwargs).jaxpr.jaxpr
    if len(traced.invars) != len(tree_leaves((args, kwargs))):  # some are static
        return {}
    places = {id(variable): place for place, variable in enumerate(traced.invars)}
    return {n: places[id(v)] for n, v in enumerate(traced.outvars) if id(v) in places}


def _of_pmap(function: Any) -> dict[str, Any]:
    """The closure of jax.pmap's own function; empty for any other."""
    cells = getattr(function, "__closure__", None)
    if not cells or getattr(function, "__module__", None) != _PMAP:
        return {}
    names = function.__code__.co_freevars
    return {name: cell.cell_contents for name, cell in zip(names, cells, strict=True)}


def _nothing() -> None:
    """Never called; compiled only to get the class of compiled functions."""
