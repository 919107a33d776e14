"""Tables built slice by slice are those built in one go."""

from pathlib import Path

import numpy as np
import pytest

from strobe.ingest.building.tables import tables
from strobe.ingest.formats import kineto
from strobe.ingest.formats.kineto import spans as kineto_spans
from strobe.ingest.trace import span_spool
from strobe.ingest.trace.span_spool import Spool
from strobe.ingest.trace.spans import Spans, make
from strobe.ingest.trace.trace import Trace
from strobe.store.strings import Strings
from tests.ingest.traces import MODELS, one_step, record

SHARED = Path(__file__).parents[4] / "shared" / "data" / "torch"
SHARED_TRACES = (
    "hta/ns_resolution_rank-0.pt.trace.json.gz",
    "tracelens/mi300_ddp_resnet18.json.gz",
)


def plain(column) -> list:
    if isinstance(column, Strings):
        return [column.values[code] if code >= 0 else None for code in column.codes.tolist()]
    return column.tolist()


def built(path: Path, scratch: Path, slice_rows: int) -> tuple[dict[str, list], int]:
    """Every table as rows, and the number of slices it was made from."""
    with span_spool.scratch_in(scratch):
        trace = Trace(spans=Spool(slice_rows))
        for piece in kineto.pieces(path, events_each=100):
            trace.spans.append(kineto_spans.spans(piece, trace.words, 0))
            trace.memory.append(kineto_spans.memory(piece, trace.words))
        found: dict[str, list] = {}
        parts = list(tables(trace, 0))
    for part in parts:
        for name, columns in part.items():
            values = (plain(columns[key]) for key in sorted(columns))
            found.setdefault(name, []).extend(zip(*values, strict=True))
    return found, sum("events" in part for part in parts)


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    path = tmp_path_factory.mktemp("trace") / "trace.json"
    model, shape = MODELS["cnn"]
    model = model()
    import torch

    record(path, lambda: one_step(model, torch.randn(shape)), profile_memory=True)
    return path


def same(path: Path, scratch: Path, slice_rows: int) -> None:
    whole, one = built(path, scratch, 10**9)
    sliced, many = built(path, scratch, slice_rows)
    assert one == 1 and many > 3
    assert sliced.keys() == whole.keys()
    for name, rows in whole.items():
        assert sliced[name] == rows, name
    assert not list(scratch.iterdir())


@pytest.mark.parametrize("slice_rows", [7, 30])
def test_slices_of_a_recording(recorded, tmp_path, slice_rows):
    same(recorded, tmp_path, slice_rows)


@pytest.mark.parametrize("name", SHARED_TRACES)
def test_slices_of_a_trace_of_a_device(name, tmp_path):
    if not (SHARED / name).exists():
        pytest.skip("shared data absent")
    same(SHARED / name, tmp_path, 3000)


def spans(*given: tuple[int, int]) -> Spans:
    start = np.array([s for s, _ in given])
    return make(start, np.array([e - s for s, e in given]), 0, 0 * start, 0 * start)


def test_a_spool_sorts_what_came_in_any_order(tmp_path):
    with span_spool.scratch_in(tmp_path):
        kept = Spool(slice_rows=5)
        for start in (90, 10, 50, 30, 70):
            kept.append(spans(*((start + i, start + i + 3) for i in range(4))))
        kept.shift(1000)
        assert kept.first_ns() == 1010 and kept.rows == 20
        found = [(part.until_ns, part.spans.ts_ns.tolist()) for part in kept.slices()]
    assert [ts for _, times in found for ts in times] == sorted(
        1000 + start + i for start in (10, 30, 50, 70, 90) for i in range(4)
    )
    for (until, times), (_, following) in zip(found, found[1:], strict=False):
        assert max(times) < until <= min(following)
    assert not list(tmp_path.iterdir())
