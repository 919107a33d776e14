"""The steps of a run that is still growing, from its journal: what came since one last asked.

Nothing is built: the marks are read and the steps decided, as ingest will do when the run ends.
What a step is, is decided with the whole run in sight, so that steps already told may change; then
the cursor does not fit any more and everything is told anew (`reset`). With `rows=no` it is only
told how many steps are new: pages ask their tables then.
"""

import re
import zlib
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from strobe.errors import UsageError
from strobe.model.schema import PHASES, Column
from strobe.web.question import Answer, Asked

# Ranks told of unless one is asked for: a curve each, and more nobody can tell apart.
MOST_RANKS = 8
# Steps told at most in one answer; of more, the newest.
MOST_STEPS = 50_000

# The cursor before the first rank began to record.
_NOTHING_YET = "nothing"

COLUMNS = (
    Column("rank", "i64", "Rank of the process."),
    Column("step", "i64", "Number of the step, counted from 1."),
    Column("ts_ns", "i64", "Start, in nanoseconds since the run began."),
    Column("dur_ns", "i64", "Length; the sum of the parts that follow."),
    *(Column(f"{phase}_ns", "i64", f"Of that, {phase}.") for phase in PHASES),
)


class _Told(NamedTuple):
    """How many steps of a rank were told, and what they were."""

    steps: int
    checksum: int


class _Steps(NamedTuple):
    """The whole steps of a rank as rows of COLUMNS, and where they lie on its own clock.

    The clock all ranks share is fitted anew with every reading of it: times told before shift by
    some nanoseconds, and that is no reason to tell them again.
    """

    rows: "np.ndarray[Any, Any]"
    own_ts_ns: "np.ndarray[Any, Any]"

    def checksum(self, count: int) -> int:
        return zlib.crc32(np.ascontiguousarray(self.own_ts_ns[:count]).tobytes())

    def begins_with(self, told: _Told) -> bool:
        return len(self.rows) >= told.steps and self.checksum(told.steps) == told.checksum


def answer(asked: Asked) -> Answer:
    from strobe.ingest.building.builder import describe
    from strobe.store.run_folder import rank_dirs
    from strobe.web.tables import as_json, described

    manifest = describe(asked.path)
    is_live = manifest.state == "recording"
    since = asked.params.get("since", "")
    before = _cursor(since)
    has_rows = asked.params.get("rows") != "no"
    # Nothing comes to a run that has ended, and its marks need not be read to say so.
    ranks = rank_dirs(asked.path) if is_live or has_rows else {}
    wanted = asked.params.get("rank", "")
    chosen = [n for n in ranks if str(n) == wanted] if wanted else list(ranks)[:MOST_RANKS]
    found = {rank: _steps(ranks[rank], rank, manifest.started_unix_ns, is_live) for rank in chosen}
    is_same = bool(since) and all(
        rank in found and found[rank].begins_with(told) for rank, told in before.items()
    )
    rows: list[Any] = []
    for rank, steps in found.items():
        known = before[rank].steps if is_same and rank in before else 0
        rows += steps.rows[max(known, len(steps.rows) - MOST_STEPS) :].tolist()
    cursor = [f"{r}-{len(s.rows)}-{s.checksum(len(s.rows)):x}" for r, s in found.items()]
    return as_json(
        {
            "ok": True,
            "is_live": is_live,
            "reset": not is_same,
            "columns": described(COLUMNS),
            "rows": rows if has_rows else [],
            "new": len(rows),
            "cursor": ",".join(cursor) or _NOTHING_YET,
        }
    )


def _steps(raw: Path, rank: int, started_unix_ns: int, is_live: bool) -> _Steps:
    """A row for each whole step, with its phases. The newest of a live run may still change."""
    from strobe.ingest.recording import journal_reader
    from strobe.ingest.steps import detection as steps_of

    marks = journal_reader.read(raw)
    decided = steps_of.decide(
        steps_of.Marks(
            ts_ns=marks.ts_ns, code=marks.code, ref=marks.ref, value=marks.value,
            thread=marks.thread,
        )
    )  # fmt: skip
    count = len(decided.step_ts_ns)
    table = np.zeros((count, len(COLUMNS)), dtype=np.int64)
    table[:, 0] = rank
    table[:, 1] = np.arange(1, count + 1)
    table[:, 2] = marks.to_run_time(decided.step_ts_ns, started_unix_ns)
    table[:, 3] = decided.step_dur_ns
    np.add.at(table, (decided.phase_step - 1, decided.phase_name + 4), decided.phase_dur_ns)
    told = max(0, count - 1) if is_live else count
    return _Steps(table[:told], np.asarray(decided.step_ts_ns + decided.step_dur_ns)[:told])


def _cursor(text: str) -> dict[int, _Told]:
    if text in ("", _NOTHING_YET):
        return {}
    if not re.fullmatch(r"\d{1,6}-\d{1,12}-[0-9a-f]{1,8}(,\d{1,6}-\d{1,12}-[0-9a-f]{1,8})*", text):
        raise UsageError.of("errors/pages.bad-cursor")
    parts = (part.split("-") for part in text.split(","))
    return {int(rank): _Told(int(count), int(crc, 16)) for rank, count, crc in parts}
