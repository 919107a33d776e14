"""Out as a Chrome timeline and in again: the same tables."""

import json
from pathlib import Path

import pytest

from strobe.errors import UnreadableTrace
from strobe.ingest.building.opening import open_run_dir
from strobe.ingest.formats import compressed
from strobe.ingest.formats.chrome import strobe_timeline, tables
from strobe.ingest.formats.chrome.chunks import EventStream
from strobe.ingest.formats.registry import READERS
from strobe.ingest.importing.importer import import_traces
from strobe.ingest.importing.sources import peek
from strobe.model.manifest import Rank
from strobe.model.schema import STORED_TABLES
from strobe.show.formats import chrome_timeline
from strobe.store.run import Run
from tests.helpers import make_run
from tests.ingest.runs import op, plain_steps, write_raw, write_window

SHARED = Path(__file__).parents[5] / "shared" / "data"
GPU_TRACES = ("hta/two_ranks", "kineto/resnet50_num_workers_0.1623143089861.pt.trace.json.gz",
              "hta/nccl_data.json.gz", "hta/mtia_rank_0.json.gz",
              "tracelens/mi300_ddp_resnet18.json.gz")  # fmt: skip
DRAWING = """
    0/steps  step:step~1      1001..9001  step=1
    0/main   op:a"quoted"\\   5000..6007  step=1  scope=net
    0/main   op:aten::mm      5000..5100  parent=1
    0/side   mark:here        8500..8500  launcher=2
    1/main   op:far           -7..1
"""


def differences(one: Run, other: Run) -> dict[str, list]:
    """Rows of each stored table that only one of two runs has."""
    found = {}
    for table in STORED_TABLES:
        rows = f"SELECT * FROM {table.name}"
        ours, theirs = (sorted(map(repr, run.sql(rows).fetchall())) for run in (one, other))
        if ours != theirs:
            found[table.name] = [sorted({*ours} - {*theirs})[:3], sorted({*theirs} - {*ours})[:3]]
    return found


def there_and_back(run: Run, folder: Path) -> Run:
    file = folder / "any.name.json.gz"
    chrome_timeline.write(run, file)
    import_traces([file], folder / "back")
    return open_run_dir(folder / "back")


@pytest.mark.slow
def test_a_drawn_run_comes_back_row_by_row(tmp_path):
    extra = {
        "links": {"from_id": [1], "to_id": [3], "kind": ["forward_backward"]},
        "queues": {"rank": [0], "ts_ns": [5], "name": ["loader"], "length": [2]},
        "counters": {
            "rank": [0] * 4, "ts_ns": [0, 1, 2, 3], "name": ["a_total", "b\n", "b\n", "nan"],
            "value": [0.1 + 0.2, -0.0, 1e300, float("inf")],
        },
        "allocations": {
            "rank": [0, 0], "address": [2**62 + 1, 2], "bytes": [64, 1], "ts_ns": [10, 11],
            "freed_ns": [20, None], "device": ["cpu", "cuda:0"], "event_id": [2, None],
        },
        "op_args": {
            "event_id": [1, 2], "input_shapes": ["[[8, 16]]", None], "flops": [2**53 + 1, None],
            "is_backward": [True, False],
        },
        "collective_args": {"event_id": [2], "operation": ["all_reduce"], "group": ["🎉"]},
        "kernel_args": {"event_id": [3], "stream": [7], "occupancy_ratio": [0.3]},
        "problems": {"rank": [0], "source": ["x.json"], "what": ["it is cut"], "count": [3]},
    }  # fmt: skip
    run = make_run(tmp_path / "run", DRAWING, extra)
    run.manifest.started_unix_ns = 1_700_000_000_123_456_789
    run.manifest.ranks[0] = Rank(rank=0, pid=77, host="there", world_size=2, devices=["cuda:0"])
    back = there_and_back(run, tmp_path)
    # The first event is 7 ns before the run began: an imported run begins with it.
    assert back.manifest.started_unix_ns == run.manifest.started_unix_ns - 7
    moved = ("events", "counters", "queues", "allocations")
    for table in STORED_TABLES:
        freed = ", freed_ns + 7 AS freed_ns" if table.name == "allocations" else ""
        replaced = f"REPLACE (ts_ns + 7 AS ts_ns{freed})" if table.name in moved else ""
        run.connection.execute(f"CREATE TABLE moved AS SELECT * {replaced} FROM {table.name}")
        ours = sorted(map(repr, run.sql("FROM moved").fetchall()))
        theirs = sorted(map(repr, back.sql(f"FROM {table.name}").fetchall()))
        assert ours == theirs, table.name
        run.connection.execute("DROP TABLE moved")
    first = back.manifest.ranks[0]
    assert (first.pid, first.host, first.world_size, first.devices) == (77, "there", 2, ["cuda:0"])


def test_a_recorded_run_comes_back(tmp_path):
    """Marks and a window with modules, backward, memory: as our recorder leaves them."""
    raw = write_raw(tmp_path / "run", plain_steps(4), strings=[(1, "x", "SGD")])
    write_window(
        raw,
        [
            op("strobe:1", 100, 160), op("aten::mm", 110, 130, **{
                "Input Dims": [[8, 4], [4, 2]], "Input type": ["float", "float"],
                "Sequence number": 5, "Fwd thread id": 0, "External id": 1}),
            op("autograd::engine::evaluate_function: MmBackward0", 170, 190, **{
                "Sequence number": 5, "Fwd thread id": 1}),
            {"ph": "i", "name": "[memory]", "cat": "cpu_instant_event", "pid": 77, "tid": 77,
             "ts": 115, "s": "t", "args": {"Addr": 99, "Bytes": 64, "Device Type": 0}},
        ],
        modules={"1": {"path": "", "class": "Net"}},
    )  # fmt: skip
    run = open_run_dir(tmp_path / "run")
    counts = run.sql(
        "SELECT (SELECT count(*) FROM links), (SELECT count(*) FROM allocations),"
        " (SELECT count(*) FROM events WHERE scope = ''), (SELECT max(step) FROM events)"
    ).fetchall()
    assert counts == [(1, 1, 3, 4)]  # nothing of it is empty, and the root's path is not null
    assert differences(run, there_and_back(run, tmp_path)) == {}


@pytest.mark.slow
@pytest.mark.parametrize("name", GPU_TRACES)
def test_imported_gpu_traces_come_back(tmp_path, name):
    if not (SHARED / "torch" / name).exists():
        pytest.skip("shared data absent")
    import_traces([SHARED / "torch" / name], tmp_path / "run")
    run = open_run_dir(tmp_path / "run")
    assert run.sql("SELECT count(*) FROM events WHERE launcher_id IS NOT NULL").fetchall() > [(0,)]
    assert differences(run, there_and_back(run, tmp_path)) == {}


def test_a_long_timeline_is_the_same_in_parts(tmp_path, monkeypatch):
    drawn = [f"0/t{n % 3} op:o{n % 7} {n * 10}..{n * 10 + 5} scope=s{n % 2}" for n in range(300)]
    links = {"from_id": [*range(200)], "to_id": [*range(1, 201)], "kind": ["flow"] * 200}
    args = {"event_id": [*range(0, 300, 2)], "flops": [n or None for n in range(150)],
            "is_backward": [False] * 150}  # fmt: skip
    more = {"links": links, "op_args": args, "counters": {
        "rank": [0] * 9, "ts_ns": [*range(9)], "name": ["a", "b", "c"] * 3, "value": [0.5] * 9,
    }}  # fmt: skip
    run = make_run(tmp_path / "run", "\n".join(drawn), more)
    monkeypatch.setattr(compressed, "_READ_BYTES", 97)
    monkeypatch.setattr(
        strobe_timeline, "EventStream", lambda path, kind: EventStream(path, kind, 2000)
    )
    for name, rows in (("PART_ROWS", 60), ("_HELD_ROWS", 20)):
        monkeypatch.setattr(tables, name, rows)
    back = there_and_back(run, tmp_path)
    assert differences(run, back) == {}
    written = [path.name.split(".")[0] for path in (tmp_path / "back").rglob("*.parquet")]
    assert written.count("events") > 3 and written.count("op_args") > 1
    assert written.count("counters") == 1
    assert not list((tmp_path / "back").rglob(".pile-*"))


@pytest.mark.slow
def test_a_second_way_there_and_back_changes_nothing(tmp_path):
    run = make_run(tmp_path / "run", DRAWING)
    once = there_and_back(run, tmp_path)
    (tmp_path / "again").mkdir()
    assert differences(once, there_and_back(once, tmp_path / "again")) == {}


@pytest.mark.slow
def test_our_reader_comes_first_and_knows_only_ours(tmp_path):
    assert READERS[0] is strobe_timeline
    file = tmp_path / "a.json"
    chrome_timeline.write(make_run(tmp_path / "run", DRAWING), file)
    assert strobe_timeline.recognise(peek(file)).ranks == (0, 1)
    file.write_text(file.read_text().replace("strobe_timeline", "another"))
    assert strobe_timeline.recognise(peek(file)) is None
    import_traces([file], tmp_path / "generic")  # still a Chrome trace
    assert open_run_dir(tmp_path / "generic").sql("SELECT count(*) FROM events").fetchall() == [
        (5,)
    ]


@pytest.mark.slow
def test_two_timelines_with_one_rank_become_two_ranks(tmp_path):
    for name in ("a", "b"):
        run = make_run(tmp_path / name, f"0/main op:{name} 0..5\n0/main op:in 1..2 parent=0")
        chrome_timeline.write(run, tmp_path / f"{name}.json")
    import_traces([tmp_path / "a.json", tmp_path / "b.json"], tmp_path / "run")
    run = open_run_dir(tmp_path / "run")
    found = run.sql(
        "SELECT t.rank, p.name, e.name FROM events e JOIN tracks t ON t.id = e.track_id"
        " JOIN events p ON p.id = e.parent_id ORDER BY 1"
    )
    assert found.fetchall() == [(0, "a", "in"), (1, "b", "in")]
    what = "its rank 0 is there already: taken as rank 1"
    assert (what,) in run.sql("SELECT what FROM problems").fetchall()


@pytest.mark.slow
def test_reformatted_and_damaged_files(tmp_path):
    run = make_run(tmp_path / "run", DRAWING)
    file = tmp_path / "a.json"
    chrome_timeline.write(run, file)
    loaded = json.loads(file.read_text())
    file.write_text(json.dumps(loaded, indent=2))
    import_traces([file], tmp_path / "pretty")
    assert len(open_run_dir(tmp_path / "pretty").sql("FROM events").fetchall()) == 5
    for event in loaded["traceEvents"]:
        if event["name"] == "process_labels":
            event["args"]["strobe"]["columns"] = {"id": "no list"}
    file.write_text(json.dumps(loaded))
    import_traces([file], tmp_path / "odd")
    said = open_run_dir(tmp_path / "odd").sql("SELECT what FROM problems").fetchall()
    assert said and all(len(what) < 300 for (what,) in said)


def test_a_timeline_of_nothing_says_so(tmp_path):
    chrome_timeline.write(make_run(tmp_path / "run", ""), tmp_path / "a.json")
    with pytest.raises(UnreadableTrace):
        import_traces([tmp_path / "a.json"], tmp_path / "back")
