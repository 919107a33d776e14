"""Waits for data of a JAX training: at the iterators of grain and of tf.data.

JAX has no loader of its own. Batches from a generator of the script's are seen in stack samples;
these libraries build batches on threads and processes of their own, and the loop only waits.
torch/data.py sees PyTorch's DataLoader, whichever framework trains.
"""

import functools
import importlib
import sys
import threading
import time
from collections.abc import Callable
from time import monotonic_ns
from typing import TYPE_CHECKING, Any

from strobe.collect.places import users_line
from strobe.collect.start.autostart import when_imported
from strobe.collect.until_deleted import UntilDeleted

if TYPE_CHECKING:
    from strobe.collect.jax.hooks import JaxHooks

Undo = Callable[[], None]
_get_ident = threading.get_ident

# The iterators of each package: "module:class", with a star for its subclasses.
_ITERATORS = {
    "grain": (
        "grain._src.python.data_loader:DataLoaderIterator",
        "grain._src.python.dataset.dataset:DatasetIterator*",
    ),
    "tensorflow": (
        "tensorflow.python.data.ops.dataset_ops:NumpyIterator",
        "tensorflow.python.data.ops.iterator_ops:OwnedIterator",
    ),
}
_SHOWN = {"tensorflow": "tf.data"}


class Iterators:
    """The iterators of this process. One may take from another: the outermost is the one that
    waits.
    """

    def __init__(self, hooks: "JaxHooks") -> None:
        self._hooks = hooks
        # The name of an iterator's source in marks; iterators created by one line are one loader.
        self._known = UntilDeleted[int]()
        self._by_line: dict[tuple[str, str, int], int] = {}
        self._numbers: dict[int, int] = {}  # of loaders, by their names
        self._inside: set[int] = set()
        self._undo: list[Undo] = []
        self._is_installed = False

    def install(self) -> None:
        self._is_installed = True
        for package in _ITERATORS:
            when_imported(package, functools.partial(self._imported, package))

    def uninstall(self) -> None:
        self._is_installed = False
        while self._undo:
            self._undo.pop()()

    def after_fork_in_child(self) -> None:
        self._known.clear()  # their numbers belong to the parent's journal
        self._by_line.clear()
        self._inside.clear()

    def _imported(self, package: str) -> None:
        if not self._is_installed:
            return
        try:
            for path in _ITERATORS[package]:
                module, _, name = path.rstrip("*").partition(":")
                owner = getattr(importlib.import_module(module), name)
                if path.endswith("*"):
                    self._wrap_derived(owner, package)
                else:
                    self._wrap_next(owner, package)
        except Exception as error:
            self._hooks.recorder.problem(
                "jax", f"waits for {_shown(package)} are not seen, this release of it is made "
                f"otherwise: {error}",
            )  # fmt: skip

    def _wrap_derived(self, base: Any, package: str) -> None:
        """Wrap each class when the first of its objects is created."""
        original, wrapped = base.__init__, set[Any]()

        @functools.wraps(original)
        def __init__(iterator: Any, *args: Any, **kwargs: Any) -> None:
            try:
                owner = next(c for c in type(iterator).__mro__ if "__next__" in vars(c))
                if owner not in wrapped:
                    wrapped.add(owner)
                    self._wrap_next(owner, package)
            except Exception as error:
                self._hooks.broke("iterator made", error)
            original(iterator, *args, **kwargs)

        base.__init__ = __init__
        self._undo.append(lambda: setattr(base, "__init__", original))

    def _wrap_next(self, owner: Any, package: str) -> None:
        hooks, inside, original = self._hooks, self._inside, owner.__next__
        main_thread = threading.main_thread

        @functools.wraps(original)
        def __next__(iterator: Any) -> Any:
            thread = _get_ident()
            if thread in inside or thread != main_thread().ident:
                return original(iterator)
            asked_ns, outcome = monotonic_ns(), -1
            inside.add(thread)
            try:
                batch = original(iterator)
                outcome = 1
                return batch
            except StopIteration:
                outcome = 0
                raise
            finally:
                inside.discard(thread)
                try:
                    loader = self._known.get(id(iterator)) or self._know(iterator, package)
                    if outcome == 1 and hooks.metrics is not None:
                        hooks.metrics.batch_came(self._numbers[loader], batch)
                    hooks.waited(loader, -1, asked_ns, outcome)
                except Exception as error:
                    hooks.broke("data_came", error)

        owner.__next__ = __next__
        self._undo.append(lambda: setattr(owner, "__next__", original))

    def _know(self, iterator: Any, package: str) -> int:
        line = users_line(sys._getframe(2))
        file, at = (line.file, line.line) if line else ("", 0)
        number = self._by_line.setdefault((package, file, at), len(self._by_line) + 1)
        loader = self._hooks.journal.string("loader", f"loader {number}: {_shown(package)}")
        self._hooks.journal.fact(
            type="place", what="data loader", number=number, file=file, line=at, function="",
            details={"library": package, "dataset": type(iterator).__name__},
            monotonic_ns=time.monotonic_ns(),
        )  # fmt: skip
        self._known.keep(iterator, loader)
        self._numbers[loader] = number
        return loader


def _shown(package: str) -> str:
    return _SHOWN.get(package, package)
