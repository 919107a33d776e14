"""A base directory with runs of every kind, a real server over it, and a client that sends what it
is told, byte for byte."""

import gzip
import http.client
import json
import time
from pathlib import Path
from typing import Any, NamedTuple

from strobe.model.manifest import Manifest, write_manifest
from strobe.web.instances import Instance
from tests.ingest.runs import START_NS, op, plain_steps, write_raw, write_window

SECRET = "the-secret-that-lies-outside"
HOSTILE = "<img src=x onerror=alert(1)>"
HOSTILE_OPERATOR = "aten::<script>alert(1)</script>'\"--"
STEP_NS = 1_000_000
STEPS = 20


def write_run(folder: Path, *, ended: str | None = "finished", ranks: int = 1, steps: int = STEPS):
    """A recorded run; each step has an operator of its own beside a common one."""
    for rank in range(ranks):
        raw = write_raw(folder, plain_steps(steps, STEP_NS), rank=rank, ended=ended)
        events = []
        for step in range(steps):
            begin = 1 + (step + 0.3) * STEP_NS / 1000
            events += [op("aten::mm", begin, begin + 100), op(f"aten::op{step + 1}", begin + 110,
                       begin + 150)]  # fmt: skip
        events += [op(HOSTILE_OPERATOR, 400, 420), op("aten::before_all_steps", 0.1, 0.5)]
        write_window(raw, events)
    manifest = Manifest(started_unix_ns=START_NS, recorded_by="strobe run", host="there")
    manifest.state = ended or "recording"
    manifest.command = ["python", "train.py"]
    write_manifest(folder, manifest)
    return folder


def write_base(folder: Path) -> Path:
    """plain, group/deep, two-ranks, live, broken, one with a hostile name; links that lead out."""
    base = folder / "base"
    base.mkdir()
    write_run(base / "plain")
    write_run(base / "group" / "deep", steps=5)
    write_run(base / "two-ranks", ranks=2, steps=6)
    write_run(base / "live", ended=None)
    write_run(base / HOSTILE, steps=4)
    write_run(base / "broken", steps=4)
    (base / "broken" / "run.json").write_text("{ this is no JSON")
    outside = write_run(folder / "outside", steps=3)
    (outside / "secret.txt").write_text(SECRET)
    (base / "link-to-run").symlink_to(outside)
    (base / "link-to-folder").symlink_to(folder)
    write_run(base / "link-inside", steps=3)
    raw = base / "link-inside" / "rank_0" / "raw"
    (raw / "facts.jsonl").unlink()
    (raw / "facts.jsonl").symlink_to(outside / "secret.txt")
    (base / "no-run").mkdir()
    (base / "no-run" / "notes.txt").write_text(SECRET)
    return base


class Answered(NamedTuple):
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class Client:
    """Asks as somebody who was let in, unless told otherwise."""

    def __init__(self, instance: Instance) -> None:
        self.instance = instance
        self.port = instance.port
        self.known = {"Authorization": f"Bearer {instance.token}"}

    def ask(
        self, target: str, method: str = "GET", headers: dict[str, str | None] | None = None,
        body: bytes | None = None,
    ) -> Answered:  # fmt: skip
        """A header that is None is left out."""
        given: dict[str, str | None] = {"Host": f"127.0.0.1:{self.port}", **self.known}
        given |= headers or {}
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            connection.putrequest(method, target, skip_host=True, skip_accept_encoding=True)
            for name, value in given.items():
                if value is not None:
                    connection.putheader(name, value)
            if body is not None:
                connection.putheader("Content-Length", str(len(body)))
            connection.endheaders(body)
            answer = connection.getresponse()
            told = {name.lower(): value for name, value in answer.getheaders()}
            content = answer.read()
            if told.get("content-encoding") == "gzip":
                content = gzip.decompress(content)
            return Answered(answer.status, told, content)
        finally:
            connection.close()

    def get(self, target: str, **headers: str) -> Answered:
        """Asks again for as long as the server works on it, as the pages do."""
        until = time.monotonic() + 120
        while True:
            answered = self.ask(target, headers=dict(headers))
            if answered.status != 202 or time.monotonic() > until:
                return answered
            time.sleep(0.05)

    def post(self, target: str, body: Any, **headers: str | None) -> Answered:
        origin = f"http://127.0.0.1:{self.port}"
        given = {"X-Strobe": "1", "Origin": origin, "Content-Type": "application/json", **headers}
        return self.ask(target, "POST", given, json.dumps(body).encode())
