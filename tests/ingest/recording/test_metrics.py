import random

import numpy as np
import pytest

import strobe
from strobe.ingest.recording.metrics import _work_begins
from strobe.ingest.steps.detection import Steps
from strobe.model.schema import PHASES
from tests.collect.metrics.logs import Logged, log_in

GAP, FORWARD = PHASES.index("gap"), PHASES.index("forward")


def steps() -> Steps:
    """Two steps: a gap of 30 and of 40, then 70 and 60 of work."""
    column = lambda *values: np.array(values, dtype=np.int64)  # noqa: E731
    return Steps(
        step_ts_ns=column(100, 200), step_dur_ns=column(100, 100),
        phase_step=column(1, 1, 2, 2), phase_name=column(GAP, FORWARD, GAP, FORWARD),
        phase_ts_ns=column(100, 130, 200, 240), phase_dur_ns=column(30, 70, 40, 60), problems=[],
    )  # fmt: skip


def test_a_step_begins_to_work_when_it_has_its_batch():
    none = np.zeros(0, dtype=np.int64)
    assert _work_begins(steps(), none).tolist() == [130, 240]
    assert _work_begins(steps(), np.array([90, 120, 215, 225])).tolist() == [120, 225]


def test_a_setting_that_is_given_again_replaces_the_former(tmp_path):
    log, _ = log_in(tmp_path)
    log.hyperparameters({"lr": 0.1, "text": "x" * 100_000})
    log.hyperparameters({"lr": 0.2})
    log.close()
    rows = {row["name"]: row["number"] for row in Logged(tmp_path)["hyperparameters"]}
    assert rows == {"lr": 0.2, "text": None}


def test_damaged_files_give_what_they_have(tmp_path):
    log, _ = log_in(tmp_path)
    for step in range(500):
        log.scalars({"a": step}, step)
        if step % 50 == 0:
            log.text("note", "short", step)
            log.text("note", "long" * 10_000, step)
    log.close()
    whole = Logged(tmp_path)
    assert len(whole["texts"]) == 20
    originals = {path: path.read_bytes() for path in tmp_path.iterdir() if path.is_file()}
    chance = random.Random(5)
    for _ in range(300):
        for path, data in originals.items():
            broken = bytearray(data[: chance.randint(0, len(data))])
            for _ in range(chance.randint(0, 20)):
                if broken:
                    broken[chance.randrange(min(len(broken), 30_000))] = chance.randrange(256)
            path.write_bytes(broken)
        Logged(tmp_path)


def test_a_cut_line_is_named(tmp_path):
    (tmp_path / "metrics.jsonl").write_text('{"type": "text", "tag": "a", "text": "b"}\n{"type"')
    logged = Logged(tmp_path)
    assert [row["text"] for row in logged["texts"]] == ["b"] or logged.problems
    assert "the last record was cut short, and was left out" in logged.problems


@pytest.mark.slow
def test_values_belong_to_the_step_that_logged_them(tmp_path):
    """Before the batch of the next step has come, a value is about the step before."""
    torch = pytest.importorskip("torch")
    from torch.utils.data import DataLoader, TensorDataset

    network = torch.nn.Linear(4, 1)
    optimizer = torch.optim.SGD(network.parameters(), lr=0.1)
    data = DataLoader(TensorDataset(torch.randn(80, 4)), batch_size=4)
    with strobe.Profiler(tmp_path / "run", light=True):
        for number, (batch,) in enumerate(data, start=1):
            strobe.log({"first": number})
            loss = network(batch).square().mean()
            optimizer.zero_grad()
            loss.backward()
            strobe.log({"middle": number})
            optimizer.step()
            strobe.log({"last": number})
        run = tmp_path / "run"
    with strobe.open_run(run) as opened:
        sql = "select tag, step, value from scalars where source = 'strobe.log' order by tag, ts_ns"
        rows = opened.run.sql(sql).fetchall()
    assert len(rows) == 60
    # The recorder knows that it trains from the first backward pass on.
    assert [row for row in rows if row[1] != row[2]] == []
