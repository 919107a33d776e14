"""A worker as the server uses it: a process, messages in, messages out."""

import io
import json
import shutil
import subprocess
import sys

import pytest

from strobe.web.answering import pool, wire
from strobe.web.answering.worker import Worker
from strobe.web.base_dir import BaseDir
from tests.removing import removing
from tests.web.served import write_run


@pytest.fixture
def worker(tmp_path):
    write_run(tmp_path / "run", steps=4)
    process = subprocess.Popen(
        [sys.executable, "-c", pool._START, str(tmp_path)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    )  # fmt: skip
    yield process
    process.kill()
    process.stdin.close()
    process.stdout.close()
    process.wait()


def ask(worker, **message):
    worker.stdin.write(wire.pack(message))
    worker.stdin.flush()
    while True:
        head, body = wire.read(worker.stdout)
        if head.get("last"):
            return head["reply"], body


def of_run(name, question="table", words=("steps",), **params):
    runs = [{"id": name, "content": "c"}]
    return {"question": question, "runs": runs, "words": list(words), "params": params}


@pytest.mark.slow
def test_questions_one_after_the_other(worker):
    head, _ = ask(worker, **of_run("run"))
    assert head["status"] == 200 and head["media_type"] == "application/json"
    head, body = ask(worker, question="*content", id="run")
    assert json.loads(body)["state"] == "finished"
    head, body = ask(worker, **of_run("../run"))
    assert head["status"] == 404 and not json.loads(body)["ok"]
    head, body = ask(worker, **of_run("run", words=("nonsense",)))
    assert head["status"] == 400


@pytest.mark.slow
def test_the_end_of_the_server_is_the_end_of_the_worker(worker):
    ask(worker, question="*content", id="run")
    worker.stdin.close()
    assert worker.wait(timeout=30) == 0


@pytest.mark.slow
def test_a_fault_of_our_own_is_told_and_the_next_question_answered(worker):
    head, body = ask(worker, question="*change", what="no such change", id="run", body={})
    assert head["status"] == 500 and "internal error of Strobe" in json.loads(body)["error"]
    assert ask(worker, question="*content", id="run")[0]["status"] == 200


@pytest.mark.slow
def test_tables_that_were_built_anew_meanwhile_are_opened_again(worker, tmp_path):
    assert ask(worker, **of_run("run", limit="1"))[0]["status"] == 200
    shutil.rmtree(tmp_path / "run" / "rank_0" / "tables")
    head, _ = ask(worker, **of_run("run", words=("events",), limit="1"))
    assert head["status"] == 200


CONTENT = {"question": "*content", "id": "run"}


@pytest.mark.parametrize(
    "job",
    [
        {"question": "table", "words": ["steps"]}, {"question": "live"}, {"question": "timeline"},
        {"question": "timeline/index"}, {"question": "*open"}, CONTENT,
    ],
    ids=lambda job: job["question"],
)  # fmt: skip
def test_a_run_removed_at_any_moment_is_a_run_that_is_not_there(tmp_path, job):
    """And no fault of ours."""
    statuses = set()
    is_done, moments = True, 0
    while is_done:
        moments += 1
        base = tmp_path / str(moments)
        run, out = write_run(base / "run", steps=2), io.BytesIO()
        with removing(run, at=moments) as removal:
            Worker(BaseDir(base), out).work({**of_run("run", words=()), **job})
        is_done = removal.is_done
        out.seek(0)
        while not (head := wire.read(out)[0]).get("last"):
            pass
        status = head["reply"]["status"]
        statuses.add(status)
        assert status in (200, 404), removal.touched
    assert statuses == {200, 404} and moments > 5


def test_a_message_that_is_cut_is_the_end(tmp_path):
    whole = wire.pack({"a": 1}, b"body")
    path = tmp_path / "messages"
    path.write_bytes(whole + whole[:-2])
    with path.open("rb") as stream:
        assert wire.read(stream) == ({"a": 1}, b"body")
        assert wire.read(stream) is None
