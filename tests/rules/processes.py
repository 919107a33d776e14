"""A test that starts another process is marked `slow`, so that `make test-fast` stays in-process.

Python's audit events report each start. A test without the mark cannot start a process: it fails
there. Processes that a fixture started for an earlier test count for every test that uses it.
"""

import multiprocessing.util
import os
import sys
from collections.abc import Iterator
from typing import Any

import pytest

# Programs that answer at once.
_HELPERS = {"git", "ldconfig", "uname"}
_FORKS = {"os.fork", "os.forkpty", "os.posix_spawn", "os.system", "os.exec"}
# On the definition of a fixture: what it started.
_STARTED = "_started_process"


class UnmarkedProcess(Exception):
    """Not an OSError, which the code under test might handle."""


class _Watch:
    def __init__(self) -> None:
        self.pid = os.getpid()
        self.test: pytest.Item | None = None
        self.started: list[str] = []

    def audit(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event == "subprocess.Popen":
            words = arguments[1]
            program = os.fsdecode(words if isinstance(words, (str, bytes)) else words[0])
            if os.path.basename(program) not in _HELPERS:
                self.start(program)
        elif event in _FORKS:
            self.start(event)

    def start(self, what: str) -> None:
        # A forked child has this hook too; what it starts is its own affair.
        if self.test is None or os.getpid() != self.pid:
            return
        self.started.append(what)
        if not _is_slow(self.test):
            raise UnmarkedProcess(_message(what))


_WATCH = _Watch()


def pytest_configure() -> None:
    sys.addaudithook(_WATCH.audit)
    spawn = multiprocessing.util.spawnv_passfds

    # The only way to start a process that has no audit event.
    def spawnv_passfds(path: bytes, args: Any, passfds: Any) -> int:
        _WATCH.start("multiprocessing")
        return spawn(path, args, passfds)

    multiprocessing.util.spawnv_passfds = spawnv_passfds


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    _WATCH.test = item
    try:
        return (yield)
    finally:
        _WATCH.test = None


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(fixturedef: Any) -> Iterator[None]:
    before, _WATCH.started = _WATCH.started, []
    try:
        return (yield)
    finally:
        if _WATCH.started:
            setattr(fixturedef, _STARTED, _WATCH.started[0])
        _WATCH.started = before


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    _WATCH.started = []
    result = yield
    # Whatever the code under test did with the error that it got.
    if not _is_slow(item) and (started := [*_WATCH.started, *_by_fixtures(item)]):
        pytest.fail(_message(started[0]), pytrace=False)
    return result


def _by_fixtures(item: pytest.Item) -> Iterator[str]:
    info = getattr(item, "_fixtureinfo", None)
    for definitions in info.name2fixturedefs.values() if info else ():
        for definition in definitions:
            if hasattr(definition, _STARTED):
                yield f"{getattr(definition, _STARTED)} (by the fixture {definition.argname})"


def _is_slow(item: pytest.Item) -> bool:
    return item.get_closest_marker("slow") is not None


def _message(what: str) -> str:
    return f"this test starts a process: {what}. Mark it with @pytest.mark.slow"
