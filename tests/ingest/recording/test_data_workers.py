"""Journals of data workers, written by hand: whose batches they are, and what is said of them."""

from pathlib import Path

import numpy as np

from strobe.ingest.recording import data_workers, journal_reader
from strobe.ingest.trace.problems import Problems
from strobe.model.journal import BATCH_LOADER_SHIFT, WORKERS_DIR, Figure, Mark
from tests.ingest.runs import BOOT_NS, START_NS, write_raw

US = 1000


def batch(ts_us: int, loader: int = 0, **figures: int):
    """The marks of one batch; figures in µs, but for numbers and counts."""
    counts = ("number", "items", "bytes")
    return [
        (ts_us * US, Mark.BATCH, loader << BATCH_LOADER_SHIFT | Figure[name.upper()],
         value if name in counts else value * US)
        for name, value in figures.items()
    ]  # fmt: skip


def worker(run: Path, pid: int, number: int, began_us: int, marks) -> None:
    """The journal that a worker of process 77 leaves."""
    raw = write_raw(run / "elsewhere" / str(pid), marks, ended=None, facts=[
        {"type": "worker", "pid": pid, "id": number, "monotonic_ns": BOOT_NS + began_us * US},
    ])  # fmt: skip
    folder = run / WORKERS_DIR / "there-77" / f"{pid}-{began_us}"
    folder.parent.mkdir(parents=True, exist_ok=True)
    raw.rename(folder)


def told(pids: list[int], loader: int, at_us: int) -> dict:
    return {"type": "data workers", "pids": pids, "number": loader,
            "monotonic_ns": BOOT_NS + at_us * US}  # fmt: skip


def rows(run: Path, raw: Path, *names: str):
    marks, said = journal_reader.read(raw), Problems()
    at_work = data_workers.workers(raw, marks, said)
    columns = data_workers.batches(marks, at_work, 0, START_NS)
    found = list(zip(*(np.ma.asarray(columns[name]).tolist() for name in names), strict=True))
    return found, said.counts


def test_a_short_batch_is_read_off_the_mark_that_it_came(tmp_path):
    packed = 1 | 300 * US << 2 | 20 * US << 22 | 90 * US << 42
    name = {"type": "string", "id": 7, "kind": "loader", "text": "loader 3: Pictures, 0 workers"}
    marks = [(1_000 * US, Mark.DATA_ASKED, 7, -1), (1_500 * US, Mark.DATA_CAME, 7, packed)]
    raw = write_raw(tmp_path, marks, facts=[name])
    names = ("loader", "worker", "ts_ns", "fetch_ns", "fetch_cpu_ns", "fetch_queued_ns",
             "collate_ns")  # fmt: skip
    one = (3, -1, 1_110 * US, 300 * US, 280 * US, 0, 90 * US)
    assert rows(tmp_path, raw, *names) == ([one], {})
    read = journal_reader.read(raw)
    assert read.value[read.code == Mark.DATA_CAME].tolist() == [1]


def test_a_long_wait_without_a_word_about_cores_is_unknown_and_a_short_one_none(tmp_path):
    marks = batch(50, 2, fetch_ns=500, fetch_cpu_ns=400, collate_ns=1)
    marks += batch(900, 2, fetch_ns=500, fetch_cpu_ns=460, collate_ns=1)
    raw = write_raw(tmp_path, marks)
    assert rows(tmp_path, raw, "fetch_queued_ns")[0] == [(None,), (0,)]


def test_batches_of_workers_and_of_the_training_process_in_order_of_time(tmp_path):
    own = batch(50, 2, fetch_ns=5, fetch_cpu_ns=4, collate_ns=1)
    raw = write_raw(tmp_path, own, facts=[told([500, 501], 1, 20)])
    made = {"fetch_ns": 30, "fetch_cpu_ns": 10, "fetch_queued_ns": 5, "collate_ns": 2}
    worker(tmp_path, 501, 1, 10, batch(60, number=1, idle_ns=40, **made, send_ns=3, items=8))
    worker(tmp_path, 500, 0, 11, batch(30, number=0, idle_ns=7, **made, bytes=64))
    names = ("loader", "worker", "batch", "ts_ns", "idle_ns", "fetch_ns", "send_ns", "items")
    assert rows(tmp_path, raw, *names) == (
        [
            (1, 0, 0, 30_000, 7_000, 30_000, None, None),
            (2, -1, None, 50_000, None, 5_000, None, None),
            (1, 1, 1, 60_000, 40_000, 30_000, 3_000, 8),
        ],
        {},
    )


def test_a_process_id_that_comes_again_belongs_to_the_next_word_on_it(tmp_path):
    facts = [told([500], 1, 20), told([500], 2, 90)]
    raw = write_raw(tmp_path, facts=facts)
    made = {"fetch_ns": 1, "fetch_cpu_ns": 1, "collate_ns": 1}
    worker(tmp_path, 500, 0, 80, batch(85, **made))
    assert rows(tmp_path, raw, "loader", "ts_ns")[0] == [(2, 85_000)]


def test_a_batch_that_was_cut_short_is_left_out(tmp_path):
    raw = write_raw(tmp_path, facts=[told([500], 1, 20)])
    worker(tmp_path, 500, 0, 10, batch(30, number=0, fetch_ns=30))
    assert rows(tmp_path, raw, "loader") == ([], {})


def test_a_worker_of_nobody_is_a_problem(tmp_path):
    raw = write_raw(tmp_path)
    worker(tmp_path, 500, 0, 10, batch(30, fetch_ns=1, fetch_cpu_ns=1, collate_ns=1))
    found, said = rows(tmp_path, raw, "loader")
    assert found == []
    assert list(said) == [("data workers", "a worker belongs to no loader that is known; left out")]


def test_looks_at_an_idle_worker_are_left_out(tmp_path):
    raw = write_raw(tmp_path, facts=[told([500], 1, 20)])
    looks = [(ts * US, Mark.SAMPLE, 9, 0) for ts in (25, 35, 70)]
    made = batch(30, fetch_ns=30, fetch_cpu_ns=10, collate_ns=2)
    worker(tmp_path, 500, 0, 10, looks + made)
    marks = journal_reader.read(raw)
    at_work = data_workers.workers(raw, marks, Problems())
    (seen,) = data_workers.looks(marks, at_work, START_NS)
    assert seen.ts_ns.tolist() == [35_000]
    assert seen.thread == "data worker 0 of loader 1"
