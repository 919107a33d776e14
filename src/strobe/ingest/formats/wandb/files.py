"""One .wandb file: its records, and the media files beside it."""

import itertools
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np

from strobe.ingest.formats.event_files.messages import Fields, scan
from strobe.ingest.formats.trackers.logged_values import LoggedValues, Say
from strobe.ingest.formats.wandb import log_records, run_facts
from strobe.ingest.formats.wandb.history import History
from strobe.ingest.formats.wandb.log_records import Piece
from strobe.ingest.formats.wandb.run_facts import Beginning, RunFacts
from strobe.ingest.formats.wandb.step_metrics import StepMetrics
from strobe.ingest.formats.xplane.wire import BYTES
from strobe.ingest.trace.trace import Trace

SOURCE = "wandb"
MEDIA = "files"  # the folder beside the file that paths count from

_HISTORY, _STATS, _METRIC = 2, 7, 12
_DAMAGED = "messages that are damaged: what is before the damage was read"


def take(path: Path, trace: Trace, say: Say) -> None:
    def broken() -> None:
        say(_DAMAGED, 1)

    steps = StepMetrics()
    for record in _records(log_records.pieces(path, _unsaid), _METRIC):
        steps.define(record, broken)
    values = LoggedValues(trace.metrics, SOURCE, path.parent / MEDIA, say)
    facts, history = RunFacts(broken), History(values, steps)
    for piece in log_records.pieces(path, say):
        found = scan(piece.block, piece.starts, piece.ends)
        say(_DAMAGED, found.broken)
        for kind, record in _in_order(piece, found.fields, run_facts.RECORDS):
            facts.take(kind, record)
        summaries = found.fields.of(run_facts.SUMMARY, BYTES).in_order()
        facts.take_summaries(piece.block, summaries)
        history.started_unix_ns = facts.started_unix_ns
        history.take(piece.block, found.fields.of(_HISTORY, BYTES).in_order())
        history.take_system_metrics(piece.block, found.fields.of(_STATS, BYTES).in_order())
    facts.store(values)
    trace.about.host = facts.host


def beginning(path: Path) -> Beginning:
    """What the run is called and when it began, by the first blocks of its file."""
    first = itertools.islice(log_records.pieces(path, _unsaid, blocks=2), 1)
    for record in _records(first, run_facts.RUN):
        return run_facts.beginning(record)
    return Beginning()


def _records(pieces: Iterable[Piece], kind: int) -> Iterator[bytes]:
    for piece in pieces:
        found = scan(piece.block, piece.starts, piece.ends).fields
        for _, record in _in_order(piece, found, (kind,)):
            yield record


def _in_order(piece: Piece, found: Fields, kinds: tuple[int, ...]) -> Iterator[tuple[int, bytes]]:
    """The records of these kinds, as they are in the file."""
    mine = found.rows(np.isin(found.number, kinds) & (found.wire == BYTES)).in_order()
    columns = (mine.number, mine.start, mine.end)
    for kind, start, end in zip(*(column.tolist() for column in columns), strict=True):
        yield kind, piece.block.text(start, end)


def _unsaid(what: str, count: int) -> None:
    """Damage is counted when the file is read."""
