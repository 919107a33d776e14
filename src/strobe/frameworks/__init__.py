"""What Strobe knows about each framework: a file each. To add one, write it and list it here."""

from collections.abc import Callable, Iterable

from strobe.frameworks.framework import Framework as Framework
from strobe.frameworks.jax import JAX as JAX
from strobe.frameworks.megengine import MEGENGINE as MEGENGINE
from strobe.frameworks.mindspore import MINDSPORE as MINDSPORE
from strobe.frameworks.torch import TORCH as TORCH
from strobe.frameworks.unknown import UNKNOWN as UNKNOWN

FRAMEWORKS = (TORCH, JAX, MINDSPORE, MEGENGINE, UNKNOWN)


def of_package(package: str) -> Framework:
    """The framework that a package named in run.json belongs to."""
    return next((one for one in FRAMEWORKS if package in one.packages), UNKNOWN)


def of_all(what: Callable[[Framework], Iterable[str] | str]) -> tuple[str, ...]:
    """What every framework names. Such names are never those of another framework, so they are
    looked for whichever framework trains."""
    named = (what(framework) for framework in FRAMEWORKS)
    lists = ((one,) if isinstance(one, str) else one for one in named)
    return tuple(name for names in lists for name in names if name)


def pattern_of_all(what: Callable[[Framework], str]) -> str:
    """A pattern that matches what the pattern of any framework matches."""
    return "|".join(f"(?:{pattern})" for pattern in of_all(what))
