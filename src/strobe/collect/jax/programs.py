"""Which of the script's compiled functions trains? The one whose results are its arguments again.

A training step takes what the step before it made: parameters go through it in a circle, or through
two functions in turn (gradients here, the update there), or through operations that the script
calls one by one in between. So, for the first calls, the arguments are looked up among earlier
results. An evaluation takes what training made and returns nothing that goes back, unless it has a
state of its own: see jax/training.py. Of those that train, some only accumulate gradients for
others: see jax/gradient_accumulation.py.
"""

import functools
import weakref
from collections.abc import Callable
from typing import Any

from strobe.collect.jax.array_access import Ways, names_of
from strobe.collect.jax.call_counts import Counts, find_counters
from strobe.collect.jax.gradient_accumulation import PATIENCE_CALLS, Intake, Taken
from strobe.collect.jax.training import WITHOUT_GRADIENT_CALLS, reaches, that_sum, that_train

# Number of calls of a function to examine: two show a circle, a few more one that is rarely used.
# As long as nothing is known to train there may be more: gradients can be accumulated over many
# calls.
_LOOKS, _MOST_LOOKS = 6, 512
# Number of calls of jax's own operations that are followed until it is known what trains.
_MOST_FOLLOWED = 20_000
# Random keys and sums of losses go in circles too; parameters are larger. In bytes.
_SMALL_CIRCLE_BYTES = 64
# Unless nothing larger goes in a circle for this many calls: then the model is that small.
_SMALL_CIRCLE_CALLS = 64

# Number of calls after which open questions are decided again.
_LATE = (_SMALL_CIRCLE_CALLS, PATIENCE_CALLS, WITHOUT_GRADIENT_CALLS)

# The array of a program's results that is waited for may be kept for a while if it is no larger
# than this. In bytes.
_SMALL_RESULT_BYTES = 1 << 16

# The script is considered to wait for a program's results if it did so this often in a row; after a
# miss, more often.
_TRUSTED_WAITS, _DOUBTED_WAITS = 8, 64

# An array that is followed: itself, the programs it came from, its position in the results.
_Made = tuple["weakref.ref[Any]", "frozenset[Program]", int]


class Program:
    """A compiled function of the script, and what is known about it."""

    __slots__ = (
        "calls", "counts", "evaluates", "fed_by", "fed_bytes", "fed_places", "feeds", "gathers",
        "intake", "is_result_small", "last_kept", "last_state", "looks", "name", "number", "passed",
        "state", "takes_data", "takes_gradient", "trains", "values", "waits", "which", "which_kept",
    )  # fmt: skip

    def __init__(self, name: str, number: int) -> None:
        self.name, self.number = name, number
        self.calls, self.looks = 0, _LOOKS
        self.feeds: set[Program] = set()
        # The largest amount of its arguments that came from programs, and from which positions of
        # results.
        self.fed_bytes = 0
        self.fed_places: set[int] = set()
        # From which programs it takes arrays, and at which argument positions; whether it takes
        # large ones that came from none.
        self.fed_by: dict[Program, set[int]] = {}
        self.takes_data = False
        # For a program without a gradient: which of its results are unchanged arguments, by
        # position; None if unknown.
        self.passed: dict[int, int] | None = None
        # None if it was traced where that could not be seen.
        self.takes_gradient: bool | None = None
        self.trains = self.evaluates = False
        # A function from its results to a small array of them, which shows when they are ready.
        self.which: Callable[[Any], Any] | None = None
        # Whether many of those arrays may live a little longer.
        self.is_result_small = True
        # For one that trains: the same for a large array that is an argument again, and the last of
        # those arrays. Another program that takes it is an evaluation, however late it comes.
        self.state: Callable[[Any], Any] | None = None
        self.last_state: weakref.ref[Any] | None = None
        # For one that trains: whether it only accumulates gradients. If single operations use them,
        # this returns, from its arguments, a large array that is replaced once they did.
        self.intake, self.gathers = Intake(), False
        self.which_kept: Callable[[Any], Any] | None = None
        self.last_kept: weakref.ref[Any] | None = None
        # If it accumulates gradients internally: which of its calls update.
        self.counts: Counts | None = None
        # Number of consecutive calls for whose results the script waited.
        self.waits = 0
        # Training metrics among its results: tags, and functions from the results to their values.
        self.values: list[tuple[str, Callable[[Any], Any]]] = []

    @property
    def is_waited_for(self) -> bool:
        """Whether the script is expected to wait for its results."""
        return self.waits >= _TRUSTED_WAITS

    def is_next_step(self, taken: Any) -> bool:
        """Whether the gradients it accumulated were used since its last call."""
        if self.which_kept is None:
            return False
        kept, last = self.which_kept(taken), self.last_kept
        self.last_kept = weakref.ref(kept)
        return last is not None and last() is not kept

    def not_waited_for(self) -> None:
        self.waits = _TRUSTED_WAITS - _DOUBTED_WAITS if self.is_waited_for else min(self.waits, 0)


class Circles:
    """Follows arrays from results to arguments, as long as that is worthwhile."""

    def __init__(self, jax: Any, array_type: Any) -> None:
        self._leaves = jax.tree_util.tree_leaves
        self._ways = Ways(jax.tree_util, array_type)
        self.array_type = array_type
        self.programs: list[Program] = []
        self._made: dict[int, _Made] = {}
        self._followed = 0
        self.is_following = True

    def add(self, program: Program) -> None:
        self.programs.append(program)

    def follow(self, args: Any, kwargs: Any, out: Any) -> None:
        """One of jax's own operations: its results come from its arguments."""
        if not self._made:
            return
        self._followed += 1
        if self._followed > _MOST_FOLLOWED:
            self._stop()
            return
        sources = frozenset(
            program for leaf in self._arrays((args, kwargs)) for program in self._sources(leaf)
        )
        if sources:
            self._keep(out, sources)

    def rewrapped(self, array: Any, again: Any) -> None:
        """The same array as another object."""
        self._copy_source(array, again)

    def look(self, program: Program, args: Any, kwargs: Any, out: Any) -> bool:
        """Whether something new is known about any program."""
        program.looks -= 1
        arrays, leaves = self._arrays((args, kwargs)), self._leaves((args, kwargs))
        is_new = False
        for source, size in self._fed(program, leaves).items():
            is_new |= program not in source.feeds or size > program.fed_bytes
            source.feeds.add(program)
            program.fed_bytes = max(program.fed_bytes, size)
        is_new |= self._look_at_intake(program, arrays, (args, kwargs))
        self._keep(out, frozenset([program]))
        self._pass_on(program, leaves, out)
        self._find_ways(program, out)
        if is_new or program.calls in _LATE:
            is_new = self._judge(program.calls)
        if program.looks <= 0 and program.calls < _MOST_LOOKS and not self._any_trains():
            program.looks = 1
        if all(known.looks <= 0 for known in self.programs):
            self._stop()
        return is_new

    def _fed(self, program: Program, leaves: list[Any]) -> dict[Program, int]:
        """How many bytes of these came from which programs."""
        fed: dict[Program, int] = {}
        for place, leaf in enumerate(leaves):
            for source in self._sources(leaf):
                source.fed_places.add(self._made[id(leaf)][2])
            sources = self._sources(leaf) | self._holders(leaf)
            for source in sources:
                fed[source] = fed.get(source, 0) + leaf.nbytes
                program.fed_by.setdefault(source, set()).add(place)
            # Its first call takes state that was created before training.
            is_data = program.calls > 1 and getattr(leaf, "nbytes", 0) >= _SMALL_CIRCLE_BYTES
            program.takes_data |= is_data and not sources
        return fed

    def _holders(self, leaf: Any) -> "set[Program]":
        """Programs that train and whose newest state this is."""
        return {
            program for program in self.programs
            if program.last_state is not None and program.last_state() is leaf
        }  # fmt: skip

    def _any_trains(self) -> bool:
        return any(program.trains for program in self.programs)

    def _look_at_intake(self, program: Program, arrays: list[Any], taken: Any) -> bool:
        """Whether it became clear now that it only accumulates gradients."""
        each = []
        for leaf in arrays:
            sources = self._sources(leaf)
            comes_back = any(reaches(program, source) for source in sources)
            each.append(Taken(leaf, comes_back, program in sources))
        intake = program.intake
        was_open = intake.is_open
        if not intake.gathers(each) or program.gathers or intake.place is None:
            return was_open and not intake.is_open
        program.gathers = True
        if self._sources(arrays[intake.place]) == {program}:
            program.which_kept = self._ways.way(taken, self._ways.found(taken), intake.place)
            program.is_next_step(taken)
        return True

    def judge_finally(self) -> Program | None:
        """No more calls follow: undecided programs are assumed to train, and so are models of a few
        bytes whose gradient is taken. Returns one of those, if any.
        """
        if self._any_trains():
            return None
        self._judge(PATIENCE_CALLS, is_last=True)
        return next((program for program in self.programs if program.trains), None)

    def _judge(self, calls: int, is_last: bool = False) -> bool:
        candidates = [program for program in self.programs if _may_train(program, calls, is_last)]
        is_late = is_last or calls >= WITHOUT_GRADIENT_CALLS
        trained = that_train(self.programs, candidates, is_late)
        found = any(not program.trains for program in trained)
        for program in self.programs if trained else ():
            # One without a gradient may have been mistaken for the training before.
            program.trains = program in trained
            program.evaluates &= not program.trains
        for program in that_sum(trained):
            program.gathers = True
        for program in self.programs:
            if not program.trains and not program.evaluates:
                program.evaluates = any(p.trains and program in p.feeds for p in self.programs)
        return found

    def _stop(self) -> None:
        self.is_following = False
        self._made.clear()

    def _arrays(self, tree: Any) -> list[Any]:
        kind = self.array_type
        return [leaf for leaf in self._leaves(tree) if type(leaf) is kind]

    def _sources(self, leaf: Any) -> "frozenset[Program]":
        made = self._made.get(id(leaf))
        # Another array may have its address now.
        return made[1] if made is not None and made[0]() is leaf else frozenset()

    def _keep(self, out: Any, sources: "frozenset[Program]") -> None:
        for place, leaf in enumerate(self._arrays(out)):
            self._made[id(leaf)] = (weakref.ref(leaf), sources, place)

    def _pass_on(self, program: Program, leaves: list[Any], out: Any) -> None:
        """Arguments that are unchanged results still belong to the program that made them."""
        results = self._leaves(out)
        for place, given in (program.passed or {}).items():
            is_array = place < len(results) and type(results[place]) is self.array_type
            if is_array and given < len(leaves):
                self._made.pop(id(results[place]), None)
                self._copy_source(leaves[given], results[place])

    def _copy_source(self, array: Any, again: Any) -> None:
        if self._sources(array):
            _, sources, place = self._made[id(array)]
            self._made[id(again)] = (weakref.ref(again), sources, place)

    def _find_ways(self, program: Program, out: Any) -> None:
        """Find the path to the smallest array of the results, preferably one that is not an
        argument again: that one may be donated before it is ready. And to the largest of those
        that are.
        """
        found = self._ways.found(out)
        fed = program.fed_places
        order = sorted(range(len(found)), key=lambda i: (i in fed, found[i][1].nbytes, i))
        way = functools.partial(self._ways.way, out, found)
        program.which = way(order[0]) if found else None
        program.is_result_small = not found or found[order[0]][1].nbytes <= _SMALL_RESULT_BYTES
        returning = [place for place in order if place in fed]
        program.state = way(returning[-1]) if returning else None
        counters = find_counters([names_of(out, path) for path, _ in found])
        if counters is not None and program.counts is None:
            program.counts = Counts(*map(way, counters))


def _may_train(program: Program, calls: int, is_last: bool) -> bool:
    is_large = program.fed_bytes >= _SMALL_CIRCLE_BYTES or calls >= _SMALL_CIRCLE_CALLS
    is_large |= is_last and program.takes_gradient is True
    is_clear = not program.intake.is_open or calls >= PATIENCE_CALLS
    return program.trains or (is_large and is_clear and reaches(program, program))
