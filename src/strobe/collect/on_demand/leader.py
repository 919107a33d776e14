"""The rank that leads: it takes requests, and gets all ranks to agree on steps that all can make.

The lowest living rank leads. Its actions are safe even while two ranks believe that they lead, as
the log accepts an entry of a number, and a decision of an entry, only once. See
docs/explain/how-ranks-agree.md.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from strobe.collect.on_demand.config import CONFIG_FILE
from strobe.collect.on_demand.log import Decision, Entry, Log
from strobe.collect.on_demand.ranks import BEAT_S, Ranks, RankStatus
from strobe.collect.on_demand.request_queue import Intake
from strobe.collect.on_demand.requests import Request

# How long it takes until all ranks have seen an entry: an initial guess, then three times the
# measured time, within these limits. A rank on a machine with all cores busy may be scheduled only
# every tenth of a second; a shared file system may lag for seconds.
_FIRST_MARGIN_S = 0.15
_LEAST_MARGIN_S, _MOST_MARGIN_S = 0.05, 30.0
_MARGIN_FACTOR = 3.0

# Steps between now and the first that can be agreed on, in addition to that time: the current one,
# and the one before the window, which absorbs the cost of starting up.
_STEPS_AHEAD = 2

# A window this near is settled with the ranks; a later one may still be replaced by an edit.
_SOON_S = 2.0

# How far apart the ranks of a job may start and still be waited for.
START_PATIENCE_S = 60.0

# Maximum number of windows settled while an earlier one is still pending, recorded or written.
_MOST_AT_ONCE = 3

# Intervals between checks of the ranks: while something is being settled, and while a window is
# far.
_BUSY_S, _FAR_S = 0.02, 0.5

# A new leader completes the last proposals; older entries are long done.
_TAKEN_OVER = 8

_STOPPED = "it was stopped"


@dataclass(eq=False)
class Proposal:
    """An unfinished entry: to be decided, or to be recorded by all ranks."""

    entry: Entry
    request: Request | None
    since: float
    is_agreed: bool = False
    ending: Entry | None = None


class Leader:
    def __init__(self, log: Log, ranks: Ranks, inbox: Path, intake: Intake) -> None:
        self._log, self._ranks, self._inbox, self.intake = log, ranks, inbox, intake
        self.reason = ""
        self.newest: Entry | None = None
        self._proposals: list[Proposal] = []
        # Entries of other leaders that may be unfinished.
        self._of_others: list[Entry] = []
        # A step that a rank is known to have been at.
        self._passed = 0
        self._margin_s = _FIRST_MARGIN_S
        self._began = time.monotonic()
        # Entries that all ranks have finished, whose window requests an analysis.
        self.to_analyse: list[Entry] = []

    @property
    def is_busy(self) -> bool:
        return bool(self._proposals or self.intake.waiting)

    def know(self, entry: Entry) -> None:
        """An entry of the log written by another leader; called for each, in order."""
        if self.newest is not None and entry.number <= self.newest.number:
            return  # our own
        self.newest = entry
        if not entry.ends:
            self.intake.handled.add(entry.key)
            self._of_others = [*self._of_others[1 - _TAKEN_OVER :], entry]

    def tick(self, rank: int) -> float:
        """Do what is due; returns how long nothing more will be. Raises OSError."""
        self._adopt()
        self.intake.take_in(self._is_free)
        if not self.is_busy:
            self.intake.is_stopped = False
            config = self.intake.config
            return _BUSY_S if config is not None and config.is_unsettled else BEAT_S
        self._ranks.look()
        if self.intake.is_stopped:
            self._stop()
        for proposal in list(self._proposals):
            self._settle(proposal, rank)
        return self._propose_next()

    # Which step

    def _is_free(self, request: Request) -> bool:
        """Whether it may still be replaced."""
        is_proposed = any(proposal.request is request for proposal in self._proposals)
        return not is_proposed and not self._is_due(request)

    def _is_due(self, request: Request) -> bool:
        if request.start is None:
            return True
        return request.start <= self._earliest(self._margin_s + _SOON_S)

    def _earliest(self, ahead_s: float) -> int:
        """The first step that all ranks can make, after this delay."""
        fastest_ns = min((r.step_ns for r in self._ranks.alive() if r.step_ns), default=0)
        passed = self._passed + int(ahead_s * 1e9 / fastest_ns if fastest_ns else 0)
        return max(self._ranks.furthest_step(ahead_s), passed) + _STEPS_AHEAD + 1

    def _are_all_there(self) -> bool:
        """Whether every rank of the job is there, and each for long enough that its
        speed is known.
        """
        if any(rank.beat < 2 for rank in self._ranks.alive()):
            return False
        known = self._ranks.known
        size = max((rank.world_size or 0 for rank in known.values()), default=0)
        return len(known) >= size or time.monotonic() - self._began > START_PATIENCE_S

    # Proposing

    def _propose_next(self) -> float:
        taken = [proposal.request for proposal in self._proposals]
        waiting = [request for request in self.intake.waiting if request not in taken]
        if not waiting or len(self._proposals) >= _MOST_AT_ONCE or not self._are_all_there():
            return _BUSY_S
        due = [request for request in waiting if self._is_due(request)]
        if due:
            self._propose_window(min(due, key=lambda request: request.start or 0))
            return _BUSY_S
        return _BUSY_S if self._proposals else self._until_due(waiting)

    def _propose_window(self, request: Request) -> None:
        # Each time that they could not agree, they get twice the time.
        margin_s = min(_MOST_MARGIN_S, self._margin_s * 2 ** min(request.tries, 10))
        before = (proposal.entry.stop + 1 for proposal in self._proposals)
        start = max(request.start or 0, self._earliest(margin_s), *before)
        last = self.newest
        is_again = last is not None and last.key == request.key and not last.ends
        number, generation = (last.number, last.generation) if last is not None else (0, 0)
        if not is_again:
            generation = max(generation + 1, request.generation or 0)
        entry = Entry(
            number + 1, generation, start, start + request.count, False, request.options,
            request.by, request.why, request.key, request.start,
        )  # fmt: skip
        if self._propose(entry):
            self._proposals.append(Proposal(entry, request, time.monotonic()))

    def _propose(self, entry: Entry) -> bool:
        """False if another leader was first; its entry is read before ours is tried again."""
        if not self._log.propose(entry):
            return False
        self.newest = entry
        return True

    def _until_due(self, waiting: list[Request]) -> float:
        """Half of the time, as steps may get shorter."""
        step_s = max((rank.step_ns for rank in self._ranks.alive()), default=0) / 1e9
        furthest = self._ranks.furthest_step(self._margin_s + _SOON_S)
        first = min(request.start or 0 for request in waiting)
        return min(_FAR_S, max(_BUSY_S, (first - furthest) * step_s / 2))

    def _adopt(self) -> None:
        """Complete what another leader proposed, which may be gone."""
        others, self._of_others = self._of_others, []
        for entry in others:
            request = next((r for r in self.intake.waiting if r.key == entry.key), None)
            if request is None:
                request = Request(
                    entry.asked_start, entry.stop - entry.start, entry.key, entry.by,
                    entry.options, entry.why,
                    file=self._inbox / entry.key if entry.by != CONFIG_FILE else None,
                )  # fmt: skip
                self.intake.waiting.append(request)
            self._proposals.append(Proposal(entry, request, time.monotonic()))

    # Deciding

    def _settle(self, proposal: Proposal, rank: int) -> None:
        entry = proposal.entry
        if not proposal.is_agreed:
            decision = self._decision(entry, rank, proposal.since)
            if decision is None:
                return
            if not decision.go:
                self._try_again(proposal, decision)
                return
            proposal.is_agreed = True
        if proposal.ending is not None:
            self._settle_ending(proposal, proposal.ending, rank)
        if self._has_everyone(lambda r: r.finished >= entry.generation):
            self._finish(proposal)

    def _decision(self, entry: Entry, rank: int, since: float) -> Decision | None:
        """The valid decision; made here if all ranks are ready."""
        decision = self._log.decision(entry.number)
        if decision is None and self._has_everyone(lambda r: r.ready >= entry.number):
            decision = self._log.decide(entry.number, Decision(True, rank))
            self._learn_margin(time.monotonic() - since)
        return decision

    def _has_everyone(self, is_so: Callable[[RankStatus], bool]) -> bool:
        return all(is_so(rank) for rank in self._ranks.alive())

    def _learn_margin(self, took_s: float) -> None:
        wanted = max(_LEAST_MARGIN_S, min(_MOST_MARGIN_S, _MARGIN_FACTOR * took_s))
        self._margin_s = max(wanted, (self._margin_s + wanted) / 2)

    def _try_again(self, proposal: Proposal, decision: Decision) -> None:
        """After the step that could not be made."""
        self._proposals.remove(proposal)
        self._passed = max(self._passed, decision.step)
        request = proposal.request
        if request is None:
            return
        if decision.why == _STOPPED:
            self.intake.drop(request)
            return
        self.reason = f"the ranks try again: {decision.why}"
        request.tries += 1

    def _finish(self, proposal: Proposal) -> None:
        self._proposals.remove(proposal)
        if proposal.request is not None:
            self.intake.drop(proposal.request)
        if proposal.entry.options.get("analyse_mode"):
            self.to_analyse.append(proposal.entry)
        self.reason = ""

    # Ending windows early

    def _stop(self) -> None:
        """Stop everything: pending proposals are rejected, and running windows end."""
        self.intake.is_stopped = False
        for proposal in self._proposals:
            standing = self._log.decide(proposal.entry.number, Decision(False, -1, _STOPPED))
            if standing.go:
                proposal.is_agreed = True
                self._propose_ending(proposal)

    def _propose_ending(self, proposal: Proposal) -> None:
        at = self._earliest(self._margin_s)
        number = (self.newest or proposal.entry).number + 1
        ending = Entry(number, proposal.entry.generation, at, at, True)
        if self._propose(ending):
            proposal.ending = ending
        else:
            self.intake.is_stopped = True  # only after the other leader's entry with this number

    def _settle_ending(self, proposal: Proposal, ending: Entry, rank: int) -> None:
        decision = self._decision(ending, rank, time.monotonic())
        if decision is None:
            return
        proposal.ending = None
        if not decision.go:
            self._passed = max(self._passed, decision.step)
            self._margin_s = min(_MOST_MARGIN_S, 2 * self._margin_s)
            self._propose_ending(proposal)
