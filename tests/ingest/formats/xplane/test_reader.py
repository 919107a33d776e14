"""Profiles of XLA: numbers of real files against XProf's, and drawn ones against arithmetic."""

import gzip
from pathlib import Path

import pytest
import zstandard

from strobe.errors import UnreadableTrace
from strobe.ingest.building.opening import open_run_dir
from strobe.ingest.formats.xplane import reader as xplane
from strobe.ingest.importing.importer import import_traces
from strobe.ingest.importing.sources import Source, peek
from strobe.ingest.trace.spans import Vocabulary
from strobe.model.manifest import read_manifest
from strobe.store.run import Run
from tests.helpers import text
from tests.ingest.formats.xplane.xspace import (
    START_NS,
    PlaneWriter,
    Ref,
    instruction,
    message,
    metadata_plane,
    program,
    space,
    task_plane,
    varint,
)

DATA = Path(__file__).parents[5] / "shared" / "data" / "xplane"
NEW, OLD = (DATA / f"mi300_jax_conv_minimal_{name}.xplane.pb" for name in ("08", "legacy"))
GEMM = "Cijk_Ailk_Bljk_BBS_BH_MT256x128x64"


@pytest.fixture(scope="module")
def runs(tmp_path_factory) -> dict[str, Run]:
    if not DATA.exists():
        pytest.skip("profiles of JAX on an MI300: shared data absent")
    home = tmp_path_factory.mktemp("xplane")
    for name, file in (("new", NEW), ("old", OLD)):
        import_traces([file], home / name)
    return {name: open_run_dir(home / name) for name in ("new", "old")}


def imported(tmp_path: Path, *planes: PlaneWriter) -> Run:
    file = tmp_path / "drawn.xplane.pb"
    file.write_bytes(space(*planes))
    import_traces([file], tmp_path / "run")
    return open_run_dir(tmp_path / "run")


def rows(run: Run, question: str) -> list[tuple]:
    return run.sql(question).fetchall()


# What XProf 2.24.2 shows as kernel_stats of the same files: calls, microseconds in all.
XPROF = {
    "new": {
        "input_transpose_fusion.kd": (40, 14344.14), GEMM: (40, 11852.414),
        "Im3d2Col.kd": (40, 679.202 + 16.08), "__amd_rocclr_copyBuffer.kd": (35, 563.521),
        "input_transpose_fusion_1.kd": (40, 481.4 + 6.8), "loop_transpose_fusion.kd": (40, 193.52),
    },
    "old": {
        "input_transpose_fusion": (5, 1950.96), GEMM: (5, 1458.753), "Im3d2Col": (5, 81.079),
        "input_transpose_fusion_1": (5, 69.261), "loop_transpose_fusion": (5, 26.44),
    },
}  # fmt: skip


@pytest.mark.parametrize("name", ["new", "old"])
def test_kernels_have_the_times_that_xprof_gives_them(runs, name):
    """XProf lists kernels that lost their operation apart (two of the new file)."""
    found = rows(
        runs[name],
        "SELECT name, count(*), sum(dur_ns) FROM events JOIN kernel_args ON event_id = id"
        " WHERE name <> 'CopyDeviceToDevice' GROUP BY name",
    )
    shown = {key[: len(GEMM)]: (calls, ns / 1000) for key, calls, ns in found}
    assert shown == {key: (calls, pytest.approx(us)) for key, (calls, us) in XPROF[name].items()}


def test_copies_of_the_old_file(runs):
    """By jax.profiler.ProfileData: 15 + 14 + 10 + 14 copies on four streams of device 0."""
    found = rows(
        runs["old"],
        "SELECT stream, count(*), sum(dur_ns), any_value(bytes), any_value(direction)"
        " FROM events JOIN kernel_args ON event_id = id WHERE kind = 'memcpy'"
        " GROUP BY 1 ORDER BY 1",
    )
    way = (655_360, "device to device")
    assert found == [
        (7, 10, 164_042, *way), (8, 15, 244_520, *way), (9, 14, 231_860, *way),
        (10, 14, 248_606, *way),
    ]  # fmt: skip


@pytest.mark.parametrize(("name", "launched"), [("new", 235), ("old", 78)])
def test_what_runs_on_a_device_knows_its_launch(runs, name, launched):
    """All of them: their correlation ids are among those of the host, by a protobuf library."""
    found = rows(
        runs[name],
        "SELECT k.kind, count(*), count(l.id), bool_and(l.kind = 'runtime' AND l.ts_ns <= k.ts_ns)"
        " FROM events k JOIN tracks t ON t.id = k.track_id"
        " LEFT JOIN events l ON l.id = k.launcher_id WHERE t.device LIKE 'gpu:%' GROUP BY 1",
    )
    assert sum(linked for _, _, linked, _ in found) == launched
    assert all(is_right for *_, is_right in found)


def test_devices_and_streams_are_tracks(runs):
    found = text(
        runs["new"].sql(
            "SELECT device, name, thread FROM tracks WHERE device LIKE 'gpu:%' ORDER BY id LIMIT 6"
        )
    )
    assert found.splitlines()[1:] == [
        "gpu:0 Stream #17(Kernel) 17", "gpu:0 Stream #15(Kernel) 15",
        "gpu:0 Stream #16(Kernel) 16", "gpu:0 Stream #18(Kernel) 18",
        "gpu:1 Stream #19(Kernel) 19", "gpu:2 Stream #22(Kernel) 22",
    ]  # fmt: skip


def test_kernels_have_grids_and_blocks(runs):
    found = rows(
        runs["new"],
        "SELECT DISTINCT grid, block, shared_memory_bytes, registers FROM events"
        " JOIN kernel_args ON event_id = id WHERE name LIKE 'Cijk%'",
    )
    assert found == [("[219, 40, 1]", "[256, 1, 1]", 49_280, None)]


@pytest.mark.parametrize(
    ("name", "starts", "ends"),
    [
        # First and last kernel of each execution on GPU 0, and on GPU 7 in the old file.
        ("new", [45_356_577, 62_346_759, 88_510_047, 92_662_333, 138_244_432],
         [46_187_978, 63_384_920, 89_825_689, 93_415_254, 140_082_194]),
        ("old", [1_635_859_993, 1_639_548_316, 1_643_214_046, 1_646_309_895, 1_650_290_009],
         [1_637_418_293, 1_640_856_487, 1_644_255_744, 1_647_415_207, 1_651_621_294]),
    ],
)  # fmt: skip
def test_steps_are_executions(runs, name, starts, ends):
    found = rows(runs[name], "SELECT dur_ns FROM events WHERE kind = 'step' ORDER BY ts_ns")
    bounds = [starts[0], *ends]
    assert [dur for (dur,) in found] == [b - a for a, b in zip(bounds, bounds[1:], strict=False)]
    (rest,) = rows(runs[name], "SELECT sum(dur_ns) FROM events WHERE name = 'rest'")
    assert rest[0] == sum(ends) - sum(starts)


def test_memory_that_was_taken_and_given_back(runs):
    """By a protobuf library: 115 of either, 107 pairs; 40 outputs of 572,026,880 bytes."""
    found = rows(
        runs["new"],
        "SELECT count(*), count(freed_ns), count(*) FILTER (bytes = 572026880),"
        " count(DISTINCT device), count(event_id) FROM allocations",
    )
    assert found == [(115, 107, 40, 8, 115)]
    peaks = "SELECT name, max(value) FROM counters WHERE name LIKE 'gpu:%' GROUP BY 1 ORDER BY 1"
    assert rows(runs["old"], peaks)[::7] == [
        ("gpu:0_allocated_bytes", 1_730_171_904.0),
        ("gpu:7_allocated_bytes", 1_732_169_984.0),
    ]


def test_nothing_is_wrong_with_the_real_files(runs):
    for run in runs.values():
        assert rows(run, "SELECT * FROM problems") == []
    assert rows(runs["old"], "SELECT count(*) FROM events WHERE kind = 'python'") == [(2648,)]


def test_a_run_begins_when_the_profile_did(tmp_path):
    imported(tmp_path, host(*steps_of_two()), task_plane())
    assert read_manifest(tmp_path / "run").started_unix_ns == START_NS


def host(*events: tuple[str, int, int, dict]) -> PlaneWriter:
    """Collectives run on a thread of their own."""
    plane = PlaneWriter("/host:CPU")
    for thread in (7, 9):
        mine = [e for e in events if e[0].startswith("all-reduce") == (thread == 9)]
        drawn = [plane.event(name, ts, dur, **more) for name, ts, dur, more in mine]
        plane.line(thread, f"tf_XLAEigen/{thread}", 0, drawn)
    return plane


def op(name: str, ts: int, dur: int, run: int) -> tuple[str, int, int, dict]:
    stats = {"hlo_op": Ref(name), "hlo_module": Ref("jit_step"), "program_id": 3, "run_id": run}
    return name, ts, dur, stats


def trained() -> PlaneWriter:
    """A product of 4x8 and 8x2 arrays, its gradient, a sum over two processes, an update."""
    dot = message((1, varint(1)), (2, varint(0)))
    groups = message((1, message((1, varint(0) + varint(1)))))
    net = "jit(step)/jvp(Net)/Dense_0/dot_general"
    gradient = "jit(step)/transpose(jvp(Net))/Dense_0/mul"
    made = program(
        "jit_step",
        instruction(1, "x", "parameter", "", (4, 8)),
        instruction(2, "w", "parameter", "", (8, 2)),
        instruction(3, "dot.1", "dot", net, (4, 2), (1, 2), (30, dot)),
        instruction(4, "fusion.2", "fusion", gradient, (8, 2), (3,)),
        instruction(5, "all-reduce.3", "all-reduce", "jit(step)/psum", (8, 2), (4,), (87, groups)),
        instruction(6, "add.4", "add", "jit(step)/add", (8, 2), (5, 2)),
        instruction(7, "copy.5", "copy", "", (8, 2), (6,)),
    )
    return metadata_plane(("jit_step", 3, made))


def steps_of_two(first: int = 1000, first_run: int = 0) -> list[tuple[str, int, int, dict]]:
    """Each: forward 100, backward 200 (a collective begins in it), 50 of it alone, update 150."""
    found = []
    for number in range(first_run, first_run + 2):
        at = first + (number - first_run) * 1000
        found += [
            op("dot.1", at, 100, number), op("fusion.2", at + 100, 200, number),
            op("all-reduce.3", at + 250, 100, number), op("add.4", at + 350, 100, number),
            op("copy.5", at + 450, 50, number),
        ]  # fmt: skip
    return found


def test_operations_of_programs(tmp_path):
    run = imported(tmp_path, trained(), host(*steps_of_two()), task_plane())
    found = text(
        run.sql(
            "SELECT name, kind, scope, is_backward, flops, o.bytes, node FROM events"
            " LEFT JOIN op_args o ON event_id = id WHERE kind IN ('op', 'collective')"
            " ORDER BY id LIMIT 5"
        )
    )
    assert found.splitlines()[1:] == [
        "dot.1 op Net.Dense_0 False 128 224 jit(step)/jvp(Net)/Dense_0/dot_general (train.py:7)",
        "fusion.2 op Net.Dense_0 True - 96 jit(step)/transpose(jvp(Net))/Dense_0/mul (train.py:7)",
        "all-reduce.3 collective - - - - -",
        "add.4 op - False - 192 jit(step)/add (train.py:7)",
        "copy.5 op - False - 128 jit_step/copy.5",  # the compiler's own
    ]  # 2 * 4 * 8 * 2 = 128; (32 + 16 + 8) * 4 = 224
    shapes = rows(run, "SELECT input_shapes, output_shapes FROM op_args ORDER BY event_id LIMIT 1")
    assert shapes == [("[[4, 8], [8, 2]]", "[[4, 2]]")]
    collective = rows(
        run,
        'SELECT operation, "group", group_size, bytes, dtype, group_ranks FROM collective_args',
    )
    assert collective == [("all_reduce", "[[0, 1]]", 2, 64, "f32", "[0, 1]")] * 2


def test_phases_follow_what_runs(tmp_path):
    """A collective counts where no computation hides it; what has no name goes with the rest."""
    run = imported(tmp_path, trained(), host(*steps_of_two()), task_plane())
    found = text(
        run.sql("SELECT step, name, ts_ns, dur_ns FROM events WHERE kind = 'phase' ORDER BY ts_ns")
    )
    assert found.splitlines()[1:] == [
        "1 forward 1000 100", "1 backward 1100 200", "1 all_reduce 1300 50", "1 update 1350 150",
        "2 gap 1500 500", "2 forward 2000 100", "2 backward 2100 200", "2 all_reduce 2300 50",
        "2 update 2350 150",
    ]  # fmt: skip


def test_steps_are_not_what_the_host_announced(tmp_path):
    """The host sends off both steps at once: they last as long as they run."""
    plane = host(*steps_of_two())
    announced = [plane.event("train", 900 + n, 1, step_num=n, _r=1) for n in range(2)]
    plane.line(8, "python", 0, announced)
    run = imported(tmp_path, trained(), plane, task_plane())
    found = rows(run, "SELECT ts_ns, dur_ns FROM events WHERE kind = 'step' ORDER BY ts_ns")
    assert found == [(901, 599), (1500, 1000)]


def test_several_runs_make_a_step_where_the_host_says_so(tmp_path):
    plane = host(*steps_of_two(1000), *steps_of_two(11_000, 2))
    plane.line(8, "python", 0, [plane.event("train", at, 9, step_num=at) for at in (0, 10_000)])
    run = imported(tmp_path, trained(), plane, task_plane())
    found = rows(run, "SELECT ts_ns, dur_ns FROM events WHERE kind = 'step' ORDER BY ts_ns")
    assert found == [(0, 2500), (2500, 10_000)]


def test_without_executions_steps_are_announced_ones(tmp_path):
    plane = host()
    plane.line(8, "python", 0, [plane.event("train", n * 10, 10, step_num=n) for n in range(3)])
    run = imported(tmp_path, plane, task_plane())
    assert rows(run, "SELECT count(*) FROM events WHERE kind = 'step'") == [(3,)]
    (what,) = rows(run, "SELECT what FROM problems")[0]
    assert what.startswith("no execution of a program is in it")


def tpu() -> PlaneWriter:
    """Two executions of three operations; names are whole instructions, to be shown shorter."""
    plane = PlaneWriter("/device:TPU:0")
    scopes = {"fusion.1": "jvp(Net)", "fusion.2": "transpose(jvp(Net))", "all-reduce.3": ""}
    whole = {name: f"%{name} = f32[8,2] {name.split('.')[0]}(...)" for name in scopes}
    for name, scope in scopes.items():
        given = {"hlo_category": name.split(".")[0], "source": "train.py:12", "flops": 4096}
        if scope:
            given["tf_op"] = f"jit(step)/{scope}/Dense_0/mul:"
        plane.event_id(whole[name], name, **given)
    plane.event_id("%copy-start.4 = (f32[8,2]) copy-start(...)", "copy-start.4")
    copy = [plane.event("%copy-start.4 = (f32[8,2]) copy-start(...)", 1000, 50)]
    starts = (1000, 2000)
    ops = [
        plane.event(whole[name], at + 100 * number, 100)
        for at in starts
        for number, name in enumerate(scopes)
    ]
    plane.line(1, "Steps", 0, [plane.event(str(n), at, 400) for n, at in enumerate(starts)])
    plane.line(2, "XLA Modules", 0, [plane.event("jit_step(9)", at, 400) for at in starts])
    plane.line(3, "XLA Ops", 0, ops)
    plane.line(4, "Async XLA Ops", 0, copy)
    return plane


def test_a_tpu(tmp_path):
    run = imported(tmp_path, tpu(), task_plane())
    found = text(
        run.sql(
            "SELECT e.name, kind, e.ts_ns, device, t.name AS line, scope FROM events e"
            " JOIN tracks t ON t.id = track_id WHERE device <> 'steps' ORDER BY e.ts_ns, thread"
            " LIMIT 6"
        )
    )
    assert found.splitlines()[1:] == [
        "0 annotation 1000 tpu:0 Steps -",
        "jit_step(9) annotation 1000 tpu:0 XLA Modules -",
        "fusion.1 kernel 1000 tpu:0 XLA Ops Net.Dense_0",
        "copy-start.4 memcpy 1000 tpu:0 Async XLA Ops -",
        "fusion.2 kernel 1100 tpu:0 XLA Ops Net.Dense_0",
        "all-reduce.3 collective 1200 tpu:0 XLA Ops -",
    ]
    steps = rows(run, "SELECT ts_ns, dur_ns FROM events WHERE kind = 'step' ORDER BY 1")
    assert steps == [(1000, 400), (1400, 1000)]
    parts = dict(rows(run, "SELECT name, sum(dur_ns) FROM events WHERE kind = 'phase' GROUP BY 1"))
    assert parts == {"forward": 200, "backward": 200, "all_reduce": 400, "gap": 600}


def test_counters_and_what_was_dropped(tmp_path):
    plane = PlaneWriter("/device:TPU:1")
    values = [plane.event("HBM %", at, 0, counter_value=at / 4) for at in (10, 20)]
    plane.line(5, "_counters_", 0, values)
    plane.plane_stat("dropped_traces", 12)
    run = imported(tmp_path, plane, task_plane())
    assert rows(run, "SELECT name, ts_ns, value FROM counters") == [
        ("HBM %", 10, 2.5),
        ("HBM %", 20, 5.0),
    ]
    assert rows(run, "SELECT what, count FROM problems") == [
        ("the profiler dropped events of /device:TPU:1: it had no room for them", 12)
    ]


@pytest.mark.parametrize("pack", [bytes, gzip.compress, zstandard.compress])
def test_recognised_by_content_packed_or_not(tmp_path, pack):
    file = tmp_path / "any.name"
    file.write_bytes(pack(space(trained(), host(*steps_of_two()), task_plane())))
    found = xplane.recognise(peek(file))
    assert found is not None and found.first_unix_ns == START_NS
    trace = xplane.read(Source("xplane", [str(file)]), Vocabulary())
    assert trace.spans.rows == 10 and trace.is_unix and not trace.said.counts


@pytest.mark.parametrize(
    "content",
    [b"\n", b"\n\x05hello", program("jit_step"), b"\x00" * 99, b"{}", b"\x0a\xff\xff\xff"],
)
def test_other_files_are_not_recognised(tmp_path, content):
    file = tmp_path / "hello.xplane.pb"
    file.write_bytes(content)
    assert xplane.recognise(peek(file)) is None


def test_a_file_without_planes_says_so(tmp_path):
    file = tmp_path / "empty.xplane.pb"
    file.write_bytes(space())
    with pytest.raises(UnreadableTrace, match="this file contains no plane of events"):
        xplane.read(Source("xplane", [str(file)]), Vocabulary())


def test_programs_alone_are_no_trace(tmp_path):
    file = tmp_path / "level_0.xplane.pb"
    file.write_bytes(space(trained(), task_plane()))
    with pytest.raises(UnreadableTrace, match="contains compiled programs .1. and no events"):
        xplane.read(Source("xplane", [str(file)]), Vocabulary())


def test_times_of_old_files_are_since_1970(tmp_path):
    plane = PlaneWriter("/host:CPU")
    plane.line(1, "python", START_NS + 500, [plane.event("work", 1.5, 2.25)])
    file = tmp_path / "old.xplane.pb"
    file.write_bytes(space(plane, task_plane()))
    trace = xplane.read(Source("xplane", [str(file)]), Vocabulary())
    (spans,) = trace.spans
    assert spans.ts_ns.tolist() == [START_NS + 501] and spans.dur_ns.tolist() == [2]
