"""Odd, cut and damaged files of Ascend and MindSpore: what can be read is, the rest is said."""

import gzip
import json
import random
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from strobe.errors import UnreadableTrace
from strobe.ingest.building.tables import tables
from strobe.ingest.formats.ascend import csv_table as ascend_csv
from strobe.ingest.formats.ascend import kernels as ascend_kernels
from strobe.ingest.formats.ascend import reader as ascend
from strobe.ingest.formats.ascend.numbers import NEVER, integers, lengths, moments, scaled, unit_ns
from strobe.ingest.formats.mindspore import reader as mindspore
from strobe.ingest.importing.sources import Source
from strobe.ingest.trace.problems import Problems
from strobe.ingest.trace.spans import Vocabulary
from strobe.ingest.trace.trace import Trace

DATA = Path(__file__).parents[5] / "shared" / "data"


def test_moments_keep_their_nanoseconds():
    texts = ["1736408883704643.212\t", " 1736408883704801.156"]
    assert moments(texts).tolist() == [1736408883704643212, 1736408883704801156]
    odd = ["1736408883704643.2", "1.7364088837046432e15", "0", "-5.5", "12", ".5"]
    assert moments(odd).tolist() == [
        1736408883704643200, 1736408883704643200, 0, -5500, 12000, 500,
    ]  # fmt: skip
    nothing = ["", "N/A", "nan", "inf", "1e999999999", "12,5", "9" * 30, "x" * 9999]
    assert set(moments(nothing).tolist()) == {NEVER}
    assert moments([]).tolist() == []


def test_lengths_and_numbers():
    assert lengths(["53.741", "840.07675", "0", ""]).tolist() == [53741, 840077, 0, -1]
    assert lengths(["53.741", "840.07675", "7"]).tolist() == [53741, 840077, 7000]
    assert lengths(["-1", "nan", "inf", "N/A", "1e300"]).tolist() == [-1] * 5
    assert scaled(["954.3701171875"], 1 << 20).tolist() == [1000729600 - 0]
    assert integers(["4294967295", "N/A", "-1", "9" * 40]).tolist() == [4294967295, -1, -1, -1]
    assert (unit_ns("Start Time(us)"), unit_ns("start_time(ms)"), unit_ns("Step")) == (
        1000,
        10**6,
        1000,
    )


KERNELS = (
    "Step Id,Task ID,Stream ID,Name,Type,Accelerator Core,Start Time(us),Duration(us),"
    "Input Shapes\r\n"
    '1,7,2,"odd ""name"", with\ncomma",MatMul,AI_CORE,1700000000000000.001\t,1.5,"""2,3;4"""\r\n'
    "1,8,2,Cast1,Cast,AI_CPU,1700000000000010.000\t,2,N/A\r\n"
)


def write(folder: Path, text: str | bytes, name: str = "kernel_details.csv") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def kernels_of(text: str | bytes, folder: Path) -> tuple[list[tuple[str, int, int]], Problems]:
    said = Problems()
    found = ascend_kernels.read([write(folder, text)], said)
    shown = found.shown()
    names = [shown[code] for code in found.shown_code.tolist()] if len(found) else []
    columns = (found.columns[name].tolist() for name in ("ts_ns", "dur_ns"))
    return list(zip(names, *columns, strict=True)), said


BOTH = [("MatMul", 1700000000000000001, 1500), ("Cast (AI CPU)", 1700000000000010000, 2000)]


@pytest.mark.parametrize(
    "change",
    [
        lambda text: text,
        lambda text: "\ufeff" + text,
        lambda text: text.replace("\r\n", "\n"),
        lambda text: text.replace("Step Id", "step_id ").replace("Stream ID", " Stream id"),
        lambda text: text + "\r\n\r\n",
        lambda text: gzip.compress(text.encode()),
    ],
)
def test_tables_as_versions_write_them(tmp_path, change: Callable[[str], str | bytes]):
    found, said = kernels_of(change(KERNELS), tmp_path)
    assert found == BOTH and not said.counts


def test_lines_that_tell_nothing_are_counted(tmp_path):
    extra = (
        "1,9,2,Cast2,Cast,AI_CORE,N/A,2,\r\n1,9,2,Cast2,Cast,AI_CORE,1700000000000020,-3,\r\n"
        "1,8,2,Cast1,Cast,AI_CPU,1700000000000010.000\t,2,N/A\r\n1,9,2,Cast2,Cast\r\n"
        "1,9,2,Cast3,Cast,AI_CORE,17000000"
    )
    found, said = kernels_of(KERNELS + extra, tmp_path)
    assert found == BOTH
    assert {what: count for (_, what), count in said.counts.items()} == {
        "a line has no time or length and was left out": 2,
        "a line repeats another and was left out": 1,
        "a line is not whole and was left out": 2,
    }


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("", "it is empty, and was left out"),
        ("a,b\n1,2\n", "it has no column Start Time, and was left out"),
        ("Name,Start Time(us)\nx,1\n", "it has no column Duration, and was left out"),
    ],
)
def test_tables_without_what_is_needed_say_so(tmp_path, text, what):
    found, said = kernels_of(text, tmp_path)
    assert found == [] and list(said.counts) == [("kernel_details.csv", what)]


def test_a_quote_that_is_never_closed_costs_what_it_swallows(tmp_path):
    rest = "".join(f"1,9,2,A{n},A,AI_CORE,17000000000{n:05}.000,1,\r\n" for n in range(9000))
    found, said = kernels_of(KERNELS + '1,9,2,"open,A,AI_CORE,1,1,\r\n' + rest, tmp_path)
    assert found[-2:] != [] and {name for name, *_ in found} == {"MatMul", "Cast (AI CPU)", "A"}
    assert any("is no CSV" in what for _, what in said.counts)


def test_a_line_without_end_is_left_out(tmp_path):
    said = Problems()
    text = "a,b\n1,2\n" + "x" * (9 << 20) + "\n3,4\n"
    path = write(tmp_path, text)
    parts = list(ascend_csv.parts(path, {"a": ("a",), "b": ("b",)}, ("a",), said))
    assert [part.text("a") for part in parts] == [["1", "3"]]
    assert said.counts == {
        ("kernel_details.csv", "a line is longer than 4 MiB and was left out"): 1
    }


def test_msprof_exports_are_read_under_its_own_names(tmp_path):
    """CANN's own tool: op_summary has other names for the same columns. Drawn by hand."""
    output = tmp_path / "PROF_000001_20260101_X" / "mindstudio_profiler_output"
    write(
        output,
        "Device_id,Op Name,OP Type,Task Type,Task Start Time(us),Task Duration(us),Stream ID,"
        "Task ID\n"
        "3,MatMul1,MatMulV2,AI_CORE,1700000000000000.500\t,10.25,4,9\n",
        "op_summary_20260101.csv",
    )
    events = [
        {"ph": "M", "name": "process_name", "pid": 32, "args": {"name": "Ascend Hardware"}},
        {"ph": "X", "name": "MatMul1", "pid": 32, "tid": 4, "ts": "1700000000000000.500",
         "dur": 10.26, "args": {"Task Type": "AI_CORE", "connection_id": 5}},
        {"ph": "X", "name": "MEMCPY_ASYNC", "pid": 32, "tid": 4, "ts": "1700000000000020.500",
         "dur": 1, "args": {"Task Type": "PCIE_DMA_SQE"}},
        {"ph": "M", "name": "process_name", "pid": 64, "args": {"name": "CANN"}},
        {"ph": "X", "name": "Node@launch", "pid": 64, "tid": 9, "ts": "1700000000000000.100",
         "dur": "0.2", "args": {"connection_id": 5}},
    ]  # fmt: skip
    write(output, json.dumps(events), "msprof_20260101.json")
    trace = read_all(tmp_path)[0]
    assert kinds(trace) == [
        ("runtime", "Node@launch", 200), ("kernel", "MatMulV2", 10_250),
        ("memcpy", "MEMCPY_ASYNC", 1000),
    ]  # fmt: skip
    assert trace.about.devices == ["npu:3"]


def kinds(trace: Trace) -> list[tuple[str, str, int]]:
    from strobe.ingest.formats.kinds import KIND_NAMES

    names = list(trace.words.names)
    found = [
        (int(ts), KIND_NAMES[kind], names[name], int(length))
        for part in trace.spans
        for ts, kind, name, length in zip(
            part.ts_ns, part.kind, part.name, part.dur_ns, strict=True
        )
    ]
    return [row[1:] for row in sorted(found)]


def read_all(folder: Path) -> list[Trace]:
    """Every trace that either reader finds in a folder, into tables."""
    traces = []
    for reader in (ascend, mindspore):
        try:
            claimed = reader.claim(folder)
        except UnreadableTrace:
            continue
        for number, found in enumerate(claimed):
            try:
                source = Source(reader.NAME, [str(path) for path in found.paths], number)
                trace = reader.read(source, Vocabulary())
            except UnreadableTrace:
                continue
            traces.append(trace)
    return traces


def build_all(folder: Path) -> None:
    for trace in read_all(folder):
        trace.shift(-trace.first_ns())
        for part in tables(trace, 0):
            assert all(len(np.atleast_1d(c)) >= 0 for t in part.values() for c in t.values() if
                       isinstance(c, np.ndarray))  # fmt: skip


SAMPLES = {
    "rank0_ascend_pt": "ascend/torch_npu_2ranks/level1/rank0_ascend_pt",
    "rank_1_ascend_pt": "ascend/torch_npu_4ranks_pp2_dp2/rank_1_ascend_pt",
    "profiler": "ascend/mindinsight/run_1/profiler",
    "cluster": "ascend/mindinsight/cluster_propose",
    "md": "mindspore/minddata_2.10/md_sink",
    "vm_1_20260101000000000_ascend_ms": "mindspore/profiler_2.10/profile_sched.graph",
    "rank_0": "mindspore/runtime_profiler_2.10/graph/rank_0",
}
_LINES = 40


@pytest.fixture(scope="module")
def small(tmp_path_factory) -> list[Path]:
    """Small whole files of every kind, each in a folder like its own."""
    if not DATA.exists():
        pytest.skip("recordings: shared data absent")
    home = tmp_path_factory.mktemp("small")
    for name, folder in SAMPLES.items():
        for path in sorted((DATA / folder).rglob("*")):
            if path.is_file() and path.suffix in (".csv", ".txt", ".json"):
                inner = path.relative_to(DATA / folder)
                target = (
                    home
                    / name
                    / (Path(*inner.parts[1:]) if "_ascend_ms" in inner.parts[0] else inner)
                )
                if not target.exists():
                    write(target.parent, _shortened(path), target.name)
    build_all(home)
    return sorted(path for path in home.rglob("*") if path.is_file())


def _shortened(path: Path) -> bytes:
    raw = path.read_bytes()
    if path.name in ("trace_view.json", "timeline_display_1.json"):
        events = json.loads(raw)
        return json.dumps([*events[:20], *events[-60:], *events[2000:2040]]).encode()
    if path.suffix == ".json" or len(raw) < 4000:
        return raw
    return b"".join(raw.splitlines(keepends=True)[:_LINES])


def damaged(raw: bytes, seed: int) -> bytes:
    """One of many ways in which a file goes wrong."""
    chance = random.Random(seed)
    at, to = sorted(chance.randrange(len(raw) + 1) for _ in range(2))
    lines = raw.split(b"\n")
    line = chance.randrange(len(lines))
    odd = chance.choice(
        [b"\0", b"\xff\xfe", b'"', b",", b"\n", b"nan", b"-1", b"1e999", b"9" * 40, b"[[[[", b"{}",
         b"null", b"\xf0\x9f\x98\x80", b"<script>", b";;;", b"\t"]
    )  # fmt: skip
    return chance.choice(
        [
            raw[:at], raw[at:], raw[:at] + raw[to:], raw[:at] + odd + raw[at:],
            raw[:at] + odd + raw[to:], raw + raw, b"",
            b"\n".join(lines[:line] + lines[line + 1 :]),
            b"\n".join(_without_column(one, chance.randrange(6)) for one in lines),
            b"\n".join([*lines[:line], lines[line].replace(b",", odd, 2), *lines[line + 1 :]]),
            bytes(byte ^ (chance.random() < 0.01) << chance.randrange(8) for byte in raw),
            gzip.compress(raw)[: at // 2 + 1], b"\0" * 1000,
        ]
    )  # fmt: skip


def _without_column(line: bytes, number: int) -> bytes:
    cells = line.split(b",")
    return b",".join(cells[:number] + cells[number + 1 :])


@pytest.mark.slow
@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(seed=st.integers(0, 2**32))
def test_damaged_files_never_raise(small, tmp_path_factory, seed):
    chance = random.Random(seed)
    path = chance.choice(small)
    root = path
    while root.parent.name != small_home(small).name:
        root = root.parent
    home = tmp_path_factory.mktemp("damaged")
    copy = home / root.name
    shutil.copytree(root, copy)
    for other in chance.sample(sorted(copy.rglob("*.*")), k=chance.randrange(3)):
        if other.is_file():
            other.unlink()
    write((copy / path.relative_to(root)).parent, damaged(path.read_bytes(), seed), path.name)
    build_all(home)
    shutil.rmtree(home)


def small_home(small: list[Path]) -> Path:
    place = small[0]
    while not place.name.startswith("small"):
        place = place.parent
    return place


def test_every_cut_of_a_timeline_gives_what_is_before_it(tmp_path):
    events = [
        {"ph": "M", "name": "process_name", "pid": 32, "args": {"name": "Ascend Hardware"}},
        *({"ph": "X", "name": f"k{n}", "pid": 32, "tid": 4, "ts": f"17000000000000{n}0.500",
           "dur": 5.0, "args": {"Task Type": "AI_CORE"}} for n in range(5)),
    ]  # fmt: skip
    text = json.dumps(events)
    ends = [place + 1 for place in range(len(text)) if text[place : place + 3] in ("}, ", "}]")]
    for cut in range(10, len(text), 7):
        path = write(tmp_path, text[:cut], "trace_view.json")
        trace = ascend.read(Source(ascend.NAME, [str(path)]), Vocabulary())
        whole = sum(end <= cut for end in ends) - 1
        assert len(kinds(trace)) == max(0, whole), cut


def test_a_folder_of_empty_files_says_so(tmp_path):
    output = tmp_path / "h_1_20260101000000_ascend_pt" / "ASCEND_PROFILER_OUTPUT"
    for name in ascend.DEVICE_FILES:
        write(output, "", name)
    [trace] = read_all(tmp_path)
    assert not len(trace.spans) and trace.steps is None
    said = {name for name, _ in trace.said.counts}
    assert said >= {
        "kernel_details.csv",
        "communication.json",
        "memory_record.csv",
        "trace_view.json",
    }
