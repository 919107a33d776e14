import errno
import math
import os
import threading
import time

import numpy as np
import pytest

from strobe.collect.metrics import segments
from strobe.collect.metrics.log import MetricLog
from tests.collect.metrics.logs import Logged, log_in


def test_what_is_logged_is_read_back_exactly(tmp_path):
    log, warnings = log_in(tmp_path)
    values = [0.1, 1e300, -0.0, math.inf, -math.inf, 2**53 + 0.0, 5e-324]
    for step, value in enumerate(values):
        log.scalars({"a": value, "b": step}, step)
    log.close()
    assert Logged(tmp_path).points("a") == list(enumerate(values))
    assert Logged(tmp_path).points("b") == [(n, float(n)) for n in range(len(values))]
    assert warnings == []


def test_nan_is_a_value(tmp_path):
    log, _ = log_in(tmp_path)
    log.scalars({"loss": math.nan}, 3)
    log.close()
    ((step, value),) = Logged(tmp_path).points("loss")
    assert step == 3
    assert math.isnan(value)


def test_values_without_a_step_are_numbered(tmp_path):
    log, _ = log_in(tmp_path)
    for value in (5.0, 6.0):
        log.scalars({"loss": value})
    log.close()
    assert Logged(tmp_path).points("loss") == [(0, 5.0), (1, 6.0)]


def test_rows_that_were_logged_before_the_folder_was_known_are_written(tmp_path):
    log = MetricLog(lambda *_: None)
    log.scalars({"loss": 1.0}, 1)
    log.text("note", "early", 1)
    log.open(tmp_path)
    log.scalars({"loss": 2.0}, 2)
    log.close()
    assert Logged(tmp_path).points("loss") == [(1, 1.0), (2, 2.0)]
    assert [row["text"] for row in Logged(tmp_path)["texts"]] == ["early"]


def test_many_rows_fill_several_files(tmp_path, monkeypatch):
    monkeypatch.setattr(segments, "_FIRST_BYTES", 8192)
    monkeypatch.setattr(segments, "_MOST_BYTES", 8192)
    log, _ = log_in(tmp_path)
    for step in range(5000):
        log.scalars({"a": step, "b": -step}, step)
        if step % 3 == 0:
            log.scalars({"c": step * 0.5}, step)
    log.close()
    logged = Logged(tmp_path)
    assert logged.points("a") == [(n, float(n)) for n in range(5000)]
    assert logged.points("c") == [(n, n * 0.5) for n in range(0, 5000, 3)]
    assert len(list(tmp_path.glob("metrics-*.bin"))) > 10
    assert logged.problems == []


def test_threads_log_at_the_same_time(tmp_path):
    log, _ = log_in(tmp_path)

    def work(name: str) -> None:
        for step in range(2000):
            log.scalars({name: step, "shared": step}, step)

    threads = [threading.Thread(target=work, args=(f"t{n}",)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    log.close()
    logged = Logged(tmp_path)
    for n in range(4):
        assert logged.points(f"t{n}") == [(step, float(step)) for step in range(2000)]
    assert len(logged.points("shared")) == 8000


def test_arrays_of_one_element_texts_and_nested_names_are_logged(tmp_path):
    log, warnings = log_in(tmp_path)
    log.scalars(
        {"a": np.float32(0.1), "b": np.array([7]), "c": {"d": 1}, "e": "a note"}, np.int64(4)
    )
    log.close()
    logged = Logged(tmp_path)
    assert logged.points("a") == [(4, float(np.float32(0.1)))]
    assert logged.points("b") == [(4, 7.0)]
    assert logged.points("c/d") == [(4, 1.0)]
    assert [(row["tag"], row["text"]) for row in logged["texts"]] == [("e", "a note")]
    assert warnings == []


def test_what_is_not_a_number_is_named_and_the_rest_logged(tmp_path):
    log, warnings = log_in(tmp_path)
    log.scalars({"loss": 1.0, "logits": np.zeros(3), "thing": object()}, 1)
    log.close()
    assert Logged(tmp_path).points("loss") == [(1, 1.0)]
    assert warnings == [
        "logits was not logged: it is numpy.ndarray of shape (3,), not a number",
        "thing was not logged: it is object, not a number",
    ]


def test_a_number_on_a_device_is_read_later_in_its_place(tmp_path):
    torch = pytest.importorskip("torch")
    log, _ = log_in(tmp_path)
    loss = torch.tensor(0.1)
    log.scalars({"loss": loss}, 1)
    loss += 1
    log.scalars({"loss": loss}, 2)
    log.close()
    assert Logged(tmp_path).points("loss") == [
        (1, torch.tensor(0.1).item()), (2, (torch.tensor(0.1) + 1).item())
    ]  # fmt: skip


def test_more_tags_than_a_row_holds(tmp_path):
    log, _ = log_in(tmp_path)
    log.scalars({f"tag{n}": n for n in range(2500)}, 1)
    log.close()
    found = {row["tag"]: row["value"] for row in Logged(tmp_path)["scalars"]}
    assert found == {f"tag{n}": float(n) for n in range(2500)}


def test_hyperparameters_and_lineage(tmp_path):
    log, _ = log_in(tmp_path)
    log.hyperparameters(
        {"lr": 0.1, "model": {"width": 8}, "layers": [1, 2], "name": "net", "x": None}
    )
    log.lineage("dataset", {"version": "v3"}, step=2)
    log.close()
    rows = {
        row["name"]: (row["value"], row["number"]) for row in Logged(tmp_path)["hyperparameters"]
    }
    assert rows == {
        "lr": ("0.1", 0.1), "model/width": ("8", 8.0), "layers": ("[1, 2]", None),
        "name": ("net", None), "x": ("null", None),
    }  # fmt: skip
    (fact,) = Logged(tmp_path)["lineage"]
    assert (fact["kind"], fact["name"], fact["value"], fact["step"]) == (
        "dataset",
        "version",
        "v3",
        2,
    )


def test_a_full_disk_is_reported_once_and_nothing_is_lost_when_there_is_space_again(
    tmp_path, monkeypatch
):
    allocate, is_full = os.posix_fallocate, True

    def refuse(handle, offset, size):
        if is_full:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        allocate(handle, offset, size)

    monkeypatch.setattr(os, "posix_fallocate", refuse)
    monkeypatch.setattr("strobe.collect.metrics.log._RETRY_S", 0.01)
    log, warnings = log_in(tmp_path)
    for step in range(30_000):
        log.scalars({"loss": step}, step)
    _wait(lambda: bool(warnings))
    is_full = False
    log.close()
    assert Logged(tmp_path).points("loss") == [(n, float(n)) for n in range(30_000)]
    assert len(warnings) == 1
    assert "No space left on device" in warnings[0]


def test_a_slow_disk_does_not_block_the_thread_that_logs(tmp_path, monkeypatch):
    began, go_on = threading.Event(), threading.Event()
    allocate = os.posix_fallocate

    def slow(handle, offset, size):
        began.set()
        assert go_on.wait(60)
        allocate(handle, offset, size)

    log, _ = log_in(tmp_path)
    log.scalars({"loss": 0.0}, 0)
    _wait(lambda: len(list(tmp_path.iterdir())) == 1)
    monkeypatch.setattr(os, "posix_fallocate", slow)
    for step in range(1, 10_000):
        log.scalars({"loss": step}, step)
    assert began.wait(60)
    for step in range(10_000, 200_000):  # returns although the disk has not answered
        log.scalars({"loss": step}, step)
    go_on.set()
    log.close()
    assert len(Logged(tmp_path).points("loss")) == 200_000


def test_what_does_not_fit_into_memory_is_counted(tmp_path, monkeypatch):
    monkeypatch.setattr(segments, "_MOST_IN_MEMORY", 1 << 18)
    log = MetricLog(lambda source, what: warnings.append(what))
    warnings: list[str] = []
    for step in range(40_000):
        log.scalars({"loss": step}, step)
    log.open(tmp_path)
    log.close()
    kept = len(Logged(tmp_path).points("loss"))
    assert 10_000 < kept < 40_000
    assert warnings == [
        f"{40_000 - kept} metrics were lost: more was logged than the disk could take"
    ]


def test_a_record_that_cannot_be_made_does_not_stop_the_others(tmp_path):
    log, warnings = log_in(tmp_path)
    log.submit(lambda: 1 / 0)
    log.text("note", "after", 1)
    log.close()
    assert [row["text"] for row in Logged(tmp_path)["texts"]] == ["after"]
    assert warnings == ["a metric was not logged: ZeroDivisionError: division by zero"]


def test_an_idle_log_has_no_thread_and_no_file(tmp_path):
    log, _ = log_in(tmp_path)
    before = threading.active_count()
    log.close()
    assert threading.active_count() == before
    assert list(tmp_path.iterdir()) == []


def _wait(is_so) -> None:
    until = time.monotonic() + 30
    while not is_so() and time.monotonic() < until:
        time.sleep(0.01)
    assert is_so()
