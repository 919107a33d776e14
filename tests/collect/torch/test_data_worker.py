"""Data workers of every kind, in real processes: what they leave, and that they work the same."""

import json
import re
from pathlib import Path

import pytest

import strobe
from tests.faults import processes
from tests.faults.processes import training
from tests.warm import python, recorded

pytest.importorskip("torch")

SCRIPT = Path(__file__).parent / "loading.py"
MS = 1_000_000

STYLES = {
    "in the training process": {"num_workers": 0},
    "iterable": {"style": "iterable", "num_workers": 0},
    "forked": {"num_workers": 2},
    "started anew": {"num_workers": 1, "method": "spawn", "epochs": 1},
    "that stay": {"num_workers": 2, "persistent_workers": True},
    "iterable in workers": {"style": "iterable", "num_workers": 2},
    "with a batch sampler": {"style": "batch_sampler", "num_workers": 2},
    "that prefetch more": {"num_workers": 2, "prefetch_factor": 4},
}


def run_of(folder: Path, **options: object):
    done = python(*recorded(folder / "run", "--light", SCRIPT, json.dumps(options)))
    assert done.returncode == 0, done.stderr
    return done, strobe.open_run(folder / "run")


@pytest.mark.slow
@pytest.mark.parametrize("style", STYLES)
def test_every_batch_is_measured_and_nothing_changes(tmp_path, style):
    options = STYLES[style]
    done, run = run_of(tmp_path, **options)
    plain = python(SCRIPT, json.dumps(options))
    assert done.stdout == plain.stdout
    assert done.stderr == plain.stderr == ""
    rows = run.sql("SELECT loader, worker, batch, items, send_ns FROM batches").fetchall()
    assert len(rows) == 6 * options.get("epochs", 2)
    assert {loader for loader, *_ in rows} == {1}
    workers = options["num_workers"]
    assert {worker for _, worker, *_ in rows} == (set(range(workers)) if workers else {-1})
    if workers:
        assert {items for *_, items, _ in rows} == {8}
        assert all(send_ns > 0 for *_, send_ns in rows)
    assert run.sql("FROM problems").fetchall() == []


@pytest.mark.slow
@pytest.mark.timing("computing takes its share of a batch")
def test_reading_computing_and_collating_are_told_apart(tmp_path):
    """48 items in 6 batches: 8 times 2 ms of sleep and 1 ms of work, then 5 ms to collate."""
    for workers in (0, 1):
        folder = tmp_path / str(workers)
        folder.mkdir()
        _, run = run_of(
            folder, num_workers=workers, sleep=0.002, spin=0.001, collate=0.005, epochs=1
        )
        ((off, on, collate, waited),) = run.sql("""
            SELECT median(fetch_ns - fetch_cpu_ns - coalesce(fetch_queued_ns, 0)),
                   median(fetch_cpu_ns), median(collate_ns), median(idle_ns) FROM batches
        """).fetchall()
        # What the thread lacked a core for just before the batch may be counted to it.
        assert 14 * MS <= off < 24 * MS
        assert 8 * MS <= on < 14 * MS
        assert collate >= 5 * MS
        assert (waited is None) == (workers == 0)


@pytest.mark.slow
def test_the_line_in_the_dataset_is_seen(tmp_path):
    _, run = run_of(tmp_path, num_workers=1, sleep=0.02, epochs=1)
    line = SCRIPT.read_text().splitlines().index("            time.sleep(sleep_s)") + 1
    places = run.sql("""
        SELECT place, count(*) FROM samples WHERE thread = 'data worker 0 of loader 1'
        GROUP BY place ORDER BY count(*) DESC
    """).fetchall()
    assert places[0][0] == f"loading.py:{line}"


@pytest.mark.slow
def test_where_a_loader_is_made_and_how(tmp_path):
    _, run = run_of(tmp_path, num_workers=1, epochs=1)
    lines = SCRIPT.read_text().splitlines()
    made = "    return DataLoader(dataset, batch_size=8, collate_fn=collate, **options)"
    ((line, function, details),) = run.sql(
        "SELECT line, function, details FROM places WHERE what = 'data loader'"
    ).fetchall()
    assert (line, function) == (lines.index(made) + 1, "loader")
    told = json.loads(details)
    wanted = {
        "num_workers": 1, "batch_size": 8, "prefetch_factor": 2, "persistent_workers": False,
        "dataset": "Items", "items": 48, "collate_fn": "collate", "sampler": "SequentialSampler",
        "is_iterable": False,
    }  # fmt: skip
    assert {name: told[name] for name in wanted} == wanted


@pytest.mark.slow
def test_queues_are_seen_at_every_step(tmp_path):
    _, run = run_of(tmp_path, num_workers=2, epochs=1)
    rows = run.sql("""
        SELECT name, count(*), min(length) >= 0, max(length) <= max(capacity), max(capacity)
        FROM queues GROUP BY name ORDER BY name
    """).fetchall()
    # Asked for at each of 6 batches and at the end; two orders ahead for each of two workers.
    assert rows == [
        ("loader 1 ready batches", 7, True, True, 4),
        ("loader 1 worker 0 orders", 7, True, True, 2),
        ("loader 1 worker 1 orders", 7, True, True, 2),
    ]


@pytest.mark.slow
def test_an_exception_of_the_dataset_has_the_traceback_it_always_had(tmp_path):
    for workers in (0, 1):
        options = json.dumps({"style": "fails", "num_workers": workers})
        plain = python(SCRIPT, options)
        with_us = python(*recorded(tmp_path / str(workers), SCRIPT, options))
        assert plain.returncode == with_us.returncode == 1
        assert "no such item" in with_us.stderr
        assert _frames_in_worker(with_us.stderr) == _frames_in_worker(plain.stderr)
        assert "recording stopped" not in with_us.stderr


def _frames_in_worker(stderr: str) -> list[str]:
    """What is said of the frames from the loader inwards."""
    inner = stderr.partition("Original Traceback")[2] or stderr
    return re.findall(r'File ".*?(?:fetch|worker|loading)\.py", line \d+, in \w+', inner)


@pytest.mark.slow
def test_a_process_that_does_not_train_leaves_no_workers_behind(tmp_path):
    script = training(tmp_path, """
for _ in torch.utils.data.DataLoader(torch.zeros(8, 2), num_workers=1):
    pass
""")  # fmt: skip
    assert python(*recorded(tmp_path / "run", script)).returncode == 0
    assert not (tmp_path / "run" / "workers").exists()


@pytest.mark.slow
def test_a_worker_that_cannot_write_goes_on_unmeasured(tmp_path):
    script = training(tmp_path, """
import pathlib
run = pathlib.Path(sys.argv[1])
run.mkdir(exist_ok=True)
(run / "workers").write_text("not a folder")
for x in torch.utils.data.DataLoader(torch.zeros(8, 8), num_workers=1):
    net(x).mean().backward()
    optimizer.step()
""")  # fmt: skip
    done = python(*recorded(tmp_path / "run", script, tmp_path / "run"))
    assert done.returncode == 0
    assert done.stderr.count("data workers are not measured") == 1


@pytest.mark.slow
def test_forked_workers_do_not_write_into_their_parents_journal(tmp_path):
    """Their garbage collector pauses as well, and tells a callback that they took over."""
    script = training(tmp_path, """
import gc
from torch.utils.data import DataLoader, Dataset

class Items(Dataset):
    junk = []
    def __len__(self):
        return 4
    def __getitem__(self, index):
        self.junk = [[i] for i in range(100_000)]
        gc.collect()  # takes longer than the 0.1 ms from which on a pause is told
        return torch.zeros(8)

for _ in range(5):
    for x in DataLoader(Items(), num_workers=2):
        net(x).mean().backward()
        optimizer.step()
""")  # fmt: skip
    assert python(*recorded(tmp_path / "run", "--light", script)).returncode == 0
    run = strobe.open_run(tmp_path / "run")
    waits = run.sql("""
        SELECT count(*) FILTER (name LIKE '%starting'), count(*) FILTER (name NOT LIKE '%starting')
        FROM events WHERE kind = 'data'
    """).fetchall()
    assert waits == [(5, 25)]
    assert run.sql("FROM problems").fetchall() == []


@pytest.mark.slow
def test_a_fault_of_ours_in_a_worker_ends_the_measuring_only(tmp_path):
    script = training(tmp_path, """
from strobe.collect.torch import data_worker

def fails(*_):
    raise ZeroDivisionError("ours")

data_worker.Worker._mark_batch = fails
total = 0
for epoch in range(2):
    for x in torch.utils.data.DataLoader(torch.arange(64.0).reshape(8, 8), num_workers=2):
        net(x).mean().backward()
        optimizer.step()
        total += x.sum().item()
print(total)
""")  # fmt: skip
    done = python(*recorded(tmp_path / "run", "--light", script))
    assert (done.returncode, done.stdout) == (0, "4032.0\n")
    (line,) = done.stderr.splitlines()
    assert line.startswith("strobe: a data worker could not be measured: ZeroDivisionError: ours")
    assert "recording stopped" not in line
    run = strobe.open_run(tmp_path / "run")
    assert run.sql("SELECT count(*) FROM batches").fetchall() == [(0,)]
    assert run.sql("SELECT count(*) FROM events WHERE kind = 'step'").fetchall() == [(16,)]
    ((source, what, count),) = run.sql("SELECT source, what, count FROM problems").fetchall()
    assert source == "data workers" and "ZeroDivisionError: ours" in what
    assert count == 4


@pytest.mark.slow
def test_a_worker_loop_of_another_torch_is_reported_once(tmp_path):
    """The arguments are looked up by name as torch is imported."""
    script = training(tmp_path, """
for epoch in range(2):
    for x in torch.utils.data.DataLoader(torch.zeros(8, 8), num_workers=2):
        net(x).mean().backward()
        optimizer.step()
""")  # fmt: skip
    script.write_text(
        "from strobe.collect.torch import data_worker\n"
        "data_worker._NEEDED += ('renamed',)\n" + script.read_text()
    )
    done = processes.python(*processes.recorded(tmp_path / "run", "--light", script))
    assert done.returncode == 0
    (line,) = done.stderr.splitlines()
    assert ". Not recorded: the inside of data workers (LookupError: _worker_loop" in line
    run = strobe.open_run(tmp_path / "run")
    assert run.sql("SELECT count(*) FROM events WHERE kind = 'step'").fetchall() == [(16,)]
    ((source, what),) = run.sql("SELECT source, what FROM problems").fetchall()
    assert source == "data workers" and "has no argument renamed" in what
    ((details,),) = run.sql(
        "SELECT DISTINCT details FROM places WHERE what = 'data loader'"
    ).fetchall()
    assert "has no argument renamed" in json.loads(details)["workers_unseen"]


def test_arguments_of_the_worker_loop_are_found_by_name():
    """torch 2.15 has `dataset_holder` where there was `dataset`."""
    from types import SimpleNamespace

    from strobe.collect.torch.data_worker import measure_worker

    def newest(dataset_kind, dataset_holder, index_queue, data_queue, worker_id, *more):
        return dataset_holder.pop()

    home = SimpleNamespace(_worker_loop=newest)
    undo = measure_worker(SimpleNamespace(is_off=False), {}, home)
    assert home._worker_loop(0, ["items"], None, None, 3) == "items"
    assert home._worker_loop(0, ["items"], index_queue=None, data_queue=None, worker_id=3)
    undo()
    assert home._worker_loop is newest

    def unknown(kind, holder, queue):
        return None

    with pytest.raises(LookupError, match="index_queue or data_queue or worker_id"):
        measure_worker(SimpleNamespace(is_off=False), {}, SimpleNamespace(_worker_loop=unknown))


@pytest.mark.slow
def test_a_kill_leaves_what_the_workers_had_measured(tmp_path):
    script = training(tmp_path, """
import signal
for n, x in enumerate(torch.utils.data.DataLoader(torch.zeros(64, 8), num_workers=2)):
    net(x).mean().backward()
    optimizer.step()
    if n == 20:
        os.kill(os.getpid(), signal.SIGKILL)
""")  # fmt: skip
    assert python(*recorded(tmp_path / "run", "--light", script)).returncode != 0
    run = strobe.open_run(tmp_path / "run")
    ((count, workers),) = run.sql("""
        SELECT count(*), count(DISTINCT worker) FROM batches WHERE send_ns IS NOT NULL
    """).fetchall()
    assert workers == 2
    assert 21 <= count <= 25  # those that came, and at most four ordered ahead
