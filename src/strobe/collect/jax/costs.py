"""The cost of a compiled program as XLA reports it: FLOPs and bytes per call, on one device.

It is queried after a window, for the programs that are already compiled and loaded; a query takes
some tenths of a millisecond.
"""

import re
from collections.abc import Callable, Iterable
from typing import Any

from strobe.collect.jax.programs import Program
from strobe.collect.recorder import Recorder
from strobe.model.journal import PROGRAM_BYTES, PROGRAM_FLOPS, Mark

# The names of these figures in XLA.
_FIGURES = {"flops": PROGRAM_FLOPS, "bytes accessed": PROGRAM_BYTES}
# A script that compiles again and again has a great many; the newest come first.
_MOST_LOADED = 1000


class Costs:
    def __init__(self, recorder: Recorder, programs: Callable[[], Iterable[Program]]) -> None:
        self._recorder, self._programs = recorder, programs
        self._told: set[bytes] = set()

    def tell(self) -> None:
        """Record the cost of programs that train or evaluate, once."""
        import jax

        wanted = {
            _module(program.name): program.name
            for program in self._programs()
            if program.trains or program.evaluates
        }
        for loaded in jax.local_devices()[0].client.live_executables()[:_MOST_LOADED]:
            module = str(loaded.hlo_modules()[0].name).partition("_")[2]
            name = wanted.pop(module, None)
            if name is not None and loaded.fingerprint not in self._told:
                self._told.add(loaded.fingerprint)
                self._put(name, loaded.cost_analysis())

    def _put(self, name: str, said: Any) -> None:
        journal = self._recorder.journal
        for key, figure in _FIGURES.items():
            if said.get(key):
                number = journal.string("counter", f"{name} {figure}")
                self._recorder.mark(Mark.COUNTER, number, round(said[key]))


def _module(name: str) -> str:
    """XLA's name for the module of a function, after jit_ or pmap_."""
    return re.sub(r"\W+", "_", name).rstrip("_")
