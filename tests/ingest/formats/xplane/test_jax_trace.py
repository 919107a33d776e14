"""JAX's Chrome JSON: the same answers as from the XPlane, as far as it holds them."""

import gzip
import json
from pathlib import Path

import pytest

from strobe.errors import UnreadableTrace
from strobe.ingest.building.opening import open_run_dir
from strobe.ingest.formats.registry import READERS
from strobe.ingest.formats.xplane import jax_trace
from strobe.ingest.importing.importer import import_traces
from strobe.ingest.importing.sources import Source, peek
from strobe.ingest.trace.spans import Vocabulary
from strobe.ingest.trace.trace import Trace
from tests.helpers import text


def named(pid: int, name: str, tid: int | None = None) -> dict:
    what = "process_name" if tid is None else "thread_name"
    return {"ph": "M", "pid": pid, "tid": tid, "name": what, "args": {"name": name}}


def span(name: str, ts: float, dur: float, pid: int = 1, tid: int = 7, **args: str) -> dict:
    return {"ph": "X", "pid": pid, "tid": tid, "ts": ts, "dur": dur, "name": name, "args": args}


HEAD = [
    named(1, "/host:CPU"), named(1, "python", 7), named(2, "/device:GPU:0"),
    named(2, "Stream #13(Kernel)", 13),
]  # fmt: skip


def written(folder: Path, events: list[dict], name: str = "vm.trace.json.gz") -> Path:
    file = folder / name
    whole = {"displayTimeUnit": "ns", "metadata": {"highres-ticks": True}, "traceEvents": events}
    file.write_bytes(gzip.compress(json.dumps(whole, separators=(",", ":")).encode(), 1))
    return file


def read(file: Path) -> Trace:
    return jax_trace.read(Source("jax", [str(file)]), Vocabulary())


def test_host_device_and_steps(tmp_path):
    events = [
        *HEAD, span("$train.py:3 step", 0, 9), span("end: fusion.1", 1, 0.5),
        span("hipModuleLaunchKernel", 1.5, 1, correlation_id="4"),
    ]  # fmt: skip
    for step in range(2):
        stats = {"hlo_op": "fusion.1", "hlo_module": "jit_step"}
        events.append(
            span("fusion.1", 3 + step * 2, 1.25, 2, 13, correlation_id=str(4 + step), **stats)
        )
        gemm = span("gemm", 4.25 + step * 2, 0.25, 2, 13, hlo_op="dot.2", hlo_module="jit_step")
        gemm["args"]["name"] = "jit(step)/transpose(jvp(Net))/mul"
        events.append(gemm)
    file = written(tmp_path, [*events, {}])
    assert next(r.NAME for r in READERS if r.recognise(peek(file))) == jax_trace.NAME
    import_traces([file], tmp_path / "run")
    run = open_run_dir(tmp_path / "run")
    found = text(
        run.sql(
            "SELECT e.name, e.kind, e.ts_ns, e.dur_ns, l.name AS launch, e.scope FROM events e"
            " LEFT JOIN events l ON l.id = e.launcher_id WHERE e.kind <> 'phase' ORDER BY e.id"
        )
    )
    assert found.splitlines()[1:] == [
        "$train.py:3 step python 0 9000 - -", "hipModuleLaunchKernel runtime 1500 1000 - -",
        "step 1 step 3000 1500 - -", "fusion.1 kernel 3000 1250 hipModuleLaunchKernel -",
        "gemm kernel 4250 250 - Net", "step 2 step 4500 2000 - -", "fusion.1 kernel 5000 1250 - -",
        "gemm kernel 6250 250 - Net",
    ]  # fmt: skip


@pytest.mark.parametrize(("count", "is_cut"), [(40, True), (39, False), (41, False)])
def test_a_file_that_was_cut_says_so(tmp_path, monkeypatch, count, is_cut):
    monkeypatch.setattr(jax_trace, "CUT_AT", 40)
    trace = read(written(tmp_path, [*HEAD, *(span("work", at, 1) for at in range(count))]))
    told = [what for _, what in trace.said.counts]
    assert told == (
        ["it holds exactly 40 events: JAX ends this file there, and what happened later is not in"
         " it; import the .xplane.pb of the same profile, which is complete"]
        if is_cut
        else []
    )  # fmt: skip
    assert jax_trace.CUT_AT == 40 and trace.spans.rows == count


def test_the_cut_is_at_a_million():
    assert jax_trace.CUT_AT == 1_000_000


def test_odd_events(tmp_path):
    events = [
        *HEAD, span("fine", 1, 1), {"ph": "X", "name": "no time", "pid": 1, "tid": 7},
        span("long ago", -3e40, 1), span("backwards", 1, -1), span("nan", float("nan"), 1),
        {**span("odd", 2, 1), "args": [1, 2]}, span("text", "5.5", "1", pid="a", tid="b"),
        span("huge", 7, 1, run_id="9" * 40, hlo_op="x", correlation_id="no number"),
        {"ph": "M", "pid": 3, "name": "process_name", "args": None}, {"ph": "Q"}, {},
    ]  # fmt: skip
    trace = read(written(tmp_path, events))
    assert trace.spans.rows == 4
    assert trace.said.counts == {
        ("vm.trace.json.gz", "an event has no time or length and was left out"): 4
    }


def test_a_file_that_ends_early_gives_what_it_has(tmp_path):
    file = written(tmp_path, [*HEAD, *(span("work", at, 1) for at in range(5000))])
    whole = gzip.decompress(file.read_bytes())
    file.write_bytes(whole[: len(whole) // 2])
    trace = read(file)
    assert 2400 < trace.spans.rows < 2600 and trace.said.counts


def test_nothing_in_it(tmp_path):
    with pytest.raises(UnreadableTrace, match="contains no events"):
        read(written(tmp_path, HEAD))
