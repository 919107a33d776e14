import socket
import subprocess
import sys

import pytest

from strobe.errors import UsageError
from strobe.web.server import Settings, hosts_of, listen


def test_on_loopback_only_its_names_are_ours(tmp_path):
    hosts = hosts_of(Settings(tmp_path, "127.0.0.1", 8080, "t", ("Runs.Example.Org",)))
    assert hosts == {"localhost", "127.0.0.1", "[::1]", "runs.example.org"}


def test_for_other_machines_also_the_name_of_this_one(tmp_path):
    hosts = hosts_of(Settings(tmp_path, "0.0.0.0", 8080, "t"))
    assert socket.gethostname().lower() in hosts and "0.0.0.0" not in hosts


def test_a_port_is_taken_once():
    with listen("127.0.0.1", 0) as first:
        port = first.getsockname()[1]
        with pytest.raises(UsageError, match="Address already in use"):
            listen("127.0.0.1", port)


@pytest.mark.slow
def test_the_server_itself_stays_light():
    """It answers while others work, so it must not load what they work with."""
    code = (
        "import sys, strobe.web.app, strobe.web.server, strobe.web.starting, strobe.web.timeouts\n"
        "print(*sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    heavy = {"numpy", "duckdb", "msgspec", "rich", "torch"}
    assert not heavy & set(done.stdout.split())
