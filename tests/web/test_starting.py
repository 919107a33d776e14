"""Servers that are started, found, lost and stopped, as a user meets them."""

import json
import os
import platform
import signal
import socket
import subprocess
import time
from pathlib import Path

import pytest

from strobe.cli import main
from strobe.web import instances, starting
from tests.web.served import Client, write_run

# Another process may take a port between its choice and its use.
pytestmark = pytest.mark.timing("a free port is still free when the server starts")


@pytest.fixture
def here(own_folders, tmp_path, monkeypatch):
    """A folder with a run, and no server of ours left at the end."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    base = tmp_path / "strobe-runs"
    write_run(base / "run", steps=3)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("SSH_CONNECTION", raising=False)
    yield base
    for instance in instances.all_noted():
        if instance.machine == platform.node():
            instances.end(instance)


@pytest.fixture
def strobe(here, capsys):
    def call(*words):
        code = main([str(word) for word in words])
        told = capsys.readouterr()
        return code, told.out, told.err

    return call


@pytest.fixture
def port(here):
    return starting.free_port("127.0.0.1")


@pytest.mark.slow
def test_start_status_stop(strobe, here, port):
    code, out, _ = strobe("start", "--port", port)
    assert code == 0 and f"runs in {here}:" in out
    link = out.splitlines()[1].strip()
    assert link.startswith(f"http://127.0.0.1:{port}/?token=")
    instance = instances.at_port(port)
    assert instance.link == link and instance.state == "running"
    assert Client(instance).get("/api/runs").json["runs"][0]["id"] == "run"
    code, out, _ = strobe("status")
    assert code == 0 and link in out and str(here) in out and f"port {port}: running" in out
    (told,) = json.loads(strobe("status", "--json")[1])["servers"]
    assert told["state"] == "running" and told["port"] == port and told["link"] == link
    code, out, _ = strobe("stop")
    assert code == 0 and f"stopped the server on port {port}" in out
    assert not instance.is_alive and instances.all_noted() == []
    code, _, err = strobe("stop")
    assert code == 2 and "no server is running" in err and "strobe start" in err
    assert "no server is running" in strobe("status")[1]


@pytest.mark.slow
def test_starting_twice(strobe, here, port, tmp_path):
    link = strobe("start", "--port", port)[1].splitlines()[1].strip()
    code, out, _ = strobe("start", "--port", port)
    assert code == 0 and "already running" in out and link in out
    code, _, err = strobe("start", "--port", port, "--base-dir", tmp_path)
    assert code == 2 and "already serves another folder" in err and f"--port {port}" in err


def test_a_port_that_somebody_else_has(strobe, here, port):
    with socket.create_server(("127.0.0.1", port)):
        code, _, err = strobe("start", "--port", port)
    assert code == 2 and f"port {port}: Address already in use" in err
    assert f"--port {port + 1}" in err and instances.all_noted() == []


@pytest.mark.slow
def test_a_server_that_died_is_noticed(strobe, here, port):
    strobe("start", "--port", port)
    instance = instances.at_port(port)
    os.kill(instance.pid, signal.SIGKILL)
    wait_for(lambda: not instance.is_alive)
    assert f"port {port}: ended unexpectedly" in strobe("status")[1]
    code, out, _ = strobe("stop", "--port", port)
    assert code == 0 and "had already ended" in out and "Log" in out
    assert instances.all_noted() == []


@pytest.mark.slow
def test_a_note_of_a_process_that_is_another_by_now(strobe, here, port):
    """Its number was given to somebody else, who must not be ended."""
    other = subprocess.Popen(["sleep", "60"])
    try:
        me = instances.this_process("127.0.0.1", port, here, "t" * 20)
        instances.write(instances.Instance(**{**me.__dict__, "pid": other.pid, "start_ticks": 1}))
        code, out, _ = strobe("start", "--port", port)
        assert code == 0 and instances.at_port(port).pid != other.pid
        strobe("stop", "--port", port)
        instances.write(instances.Instance(**{**me.__dict__, "pid": other.pid, "start_ticks": 1}))
        code, out, _ = strobe("stop", "--port", port)
        assert code == 0 and "had already ended" in out
        assert other.poll() is None
    finally:
        other.kill()
        other.wait()


@pytest.mark.slow
def test_a_note_that_cannot_be_read_is_no_server(strobe, here, port):
    (instances.folder() / f"{platform.node()}-{port}.json").write_text("{ half")
    assert strobe("start", "--port", port)[0] == 0


@pytest.mark.slow
def test_a_server_that_hangs_is_ended_all_the_same(strobe, here, port, monkeypatch):
    strobe("start", "--port", port)
    instance = instances.at_port(port)
    os.kill(instance.pid, signal.SIGSTOP)
    monkeypatch.setattr(instances, "_ANSWER_S", 0.3)
    monkeypatch.setattr(instances, "_END_S", 0.5)
    assert "not responding" in strobe("status")[1]
    code, out, _ = strobe("stop")
    assert code == 0 and "killed the server" in out
    wait_for(lambda: not instance.is_alive)


@pytest.mark.slow
def test_several_servers_are_told_apart(strobe, here, port):
    strobe("start", "--port", port)
    second = starting.free_port("127.0.0.1")
    assert strobe("start", "--port", second)[0] == 0
    code, _, err = strobe("stop")
    assert code == 2 and f"--port {port} " in err and f"--port {second} " in err
    assert strobe("stop", "--all")[0] == 0
    assert instances.all_noted() == []


@pytest.mark.slow
def test_workers_end_with_the_server_that_is_killed(strobe, here, port):
    strobe("start", "--port", port)
    instance = instances.at_port(port)
    assert Client(instance).get("/api/runs/run/table/steps").status == 200
    workers = children(instance.pid)
    assert workers
    os.kill(instance.pid, signal.SIGKILL)
    wait_for(lambda: not any(instances.start_ticks(pid) for pid in workers))


@pytest.mark.slow
def test_notes_and_their_folder_are_of_the_user_alone(strobe, here, port):
    strobe("start", "--port", port)
    assert instances.folder().stat().st_mode & 0o777 == 0o700
    (note,) = instances.folder().glob("*.json")
    assert note.stat().st_mode & 0o777 == 0o600
    arguments = Path(f"/proc/{instances.at_port(port).pid}/cmdline").read_bytes()
    assert instances.at_port(port).token.encode() not in arguments


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--base-dir", "nowhere"], "this folder does not exist"),
        (["--base-dir", "file"], "a file, not a folder"),
        (["--summary-base-dir", "file"], "a file, not a folder"),
        (["--port", "70000"], "70000 is not a port"),
        (["--port", "x"], "not a whole number"),
        (["--host", "no.such.host.example"], "cannot listen on"),
    ],
)
def test_a_mistake_is_told_in_words(strobe, here, tmp_path, words, said):
    (tmp_path / "file").write_text("")
    code, _, err = strobe("start", *words)
    assert code == 2 and said in err and "Traceback" not in err


@pytest.mark.slow
def test_in_the_foreground_it_stays_until_interrupted(here, port, tmp_path):
    import sys

    command = [sys.executable, "-m", "strobe", "start", "--foreground", "--port", str(port)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=tmp_path) as process:
        try:
            wait_for(lambda: instances.at_port(port) is not None)
            assert instances.at_port(port).pid == process.pid
            process.send_signal(signal.SIGINT)
            out, _ = process.communicate(timeout=30)
        finally:
            process.kill()
    assert "Ctrl+C" in out and instances.at_port(port) is None


@pytest.mark.slow
def test_show_web_uses_the_server_that_shows_the_run(strobe, here, port, monkeypatch):
    opened = []
    monkeypatch.setattr("webbrowser.open", lambda link: opened.append(link) or True)
    monkeypatch.setenv("DISPLAY", ":0")
    strobe("start", "--port", port)
    code, out, _ = strobe("show", here / "run", "--web")
    link = f"{instances.at_port(port).link}#/run/run/overview"
    assert code == 0 and link in out and opened == [link]
    strobe("stop")
    monkeypatch.delenv("DISPLAY")
    code, out, _ = strobe("show", here / "run", "--web")
    (started,) = instances.all_noted()
    assert code == 0 and f"{started.link}#/run/run/overview" in out
    assert started.base_dir == str(here) and len(opened) == 1
    assert strobe("show", "nowhere", "--web")[0] == 2
    assert strobe("show", here / "run", "--web", "--json")[0] == 2


def children(pid: int) -> list[int]:
    return [
        int(path.name)
        for path in Path("/proc").glob("[0-9]*")
        if (path / "stat").exists()
        and (path / "stat").read_bytes().rpartition(b")")[2].split()[1] == str(pid).encode()
    ]


def wait_for(condition) -> None:
    until = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.05)
