import os
from pathlib import Path

import pytest

from strobe.web import instances, starting
from tests.web.served import Client, write_base


@pytest.fixture(scope="session")
def own_folders(tmp_path_factory):
    """Notes, logs and kept answers of the servers of these tests, away from the user's own."""
    home = tmp_path_factory.mktemp("home")
    (home / "tmp").mkdir()
    kept = {name: os.environ.get(name) for name in ("XDG_STATE_HOME", "TMPDIR", "STROBE_TOKEN")}
    os.environ["XDG_STATE_HOME"], os.environ["TMPDIR"] = str(home), str(home / "tmp")
    os.environ.pop("STROBE_TOKEN", None)
    yield home
    for name, value in kept.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value


@pytest.fixture
def serve(own_folders):
    """Start servers that end with the test."""
    started = []

    def start(base: Path) -> Client:
        started.append(starting.start(base, "127.0.0.1", starting.free_port("127.0.0.1")))
        return Client(started[-1])

    yield start
    for instance in started:
        instances.end(instance)


@pytest.fixture(scope="session")
def base(tmp_path_factory):
    return write_base(tmp_path_factory.mktemp("served"))


@pytest.fixture(scope="session")
def client(base, own_folders):
    """One server for all tests that change nothing."""
    instance = starting.start(base, "127.0.0.1", starting.free_port("127.0.0.1"))
    yield Client(instance)
    instances.end(instance)
