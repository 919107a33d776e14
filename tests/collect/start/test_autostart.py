"""When a package counts as imported, and what is seen of processes that are started. What begins
with a framework is tests/loops/test_loops.py."""

import functools
import importlib.util
import multiprocessing
import sys
from types import SimpleNamespace

import pytest

from strobe.collect import recorder
from strobe.collect.places import Places
from strobe.collect.start.autostart import _see_processes, when_imported


@pytest.fixture
def package(tmp_path, monkeypatch):
    """One that tells somebody about itself before it is complete."""
    monkeypatch.syspath_prepend(tmp_path)
    folder = tmp_path / "strobe_test_package"
    folder.mkdir()
    (folder / "__init__.py").write_text(
        "import strobe_test_listener\nstrobe_test_listener.tell()\nis_whole = True\n"
    )
    (tmp_path / "strobe_test_listener.py").write_text("tell = None\n")
    yield "strobe_test_package"
    for name in ("strobe_test_package", "strobe_test_listener"):
        sys.modules.pop(name, None)


def is_whole(package):
    return getattr(sys.modules[package], "is_whole", False)


def test_a_package_whose_import_has_begun_is_waited_for(package):
    import strobe_test_listener

    seen = []
    strobe_test_listener.tell = lambda: when_imported(
        package, lambda: seen.append(is_whole(package))
    )
    __import__(package)
    assert seen == [True]


def test_a_package_that_is_there_is_told_at_once_and_one_that_is_not_later(package):
    import strobe_test_listener

    strobe_test_listener.tell = lambda: None
    seen = []
    when_imported(package, lambda: seen.append("later"))
    assert seen == []
    __import__(package)
    when_imported(package, lambda: seen.append("at once"))
    assert seen == ["later", "at once"]


def test_a_package_that_somebody_only_looks_for_is_still_waited_for(package):
    """As `import transformers` looks whether torch is installed, long before it is imported."""
    import strobe_test_listener

    strobe_test_listener.tell = lambda: None
    seen, finders = [], list(sys.meta_path)
    when_imported(package, lambda: seen.append(is_whole(package)))
    for _ in range(2):
        assert importlib.util.find_spec(package).name == package
    assert seen == []
    __import__(package)
    assert seen == [True] and sys.meta_path == finders
    importlib.reload(sys.modules[package])
    assert seen == [True]


def test_however_often_it_is_asked_one_finder_waits_and_the_last_is_called(package):
    """Several recorders in one process, one after the other: looking must not take ever longer."""
    import strobe_test_listener

    strobe_test_listener.tell = lambda: None
    seen, count = [], len(sys.meta_path)
    for number in range(20):
        when_imported(package, lambda number=number: seen.append(number))
    assert len(sys.meta_path) == count + 1
    assert importlib.util.find_spec("strobe_no_such_package") is None
    __import__(package)
    assert seen == [19] and len(sys.meta_path) == count


def test_an_import_that_fails_at_first_is_waited_for(package):
    import strobe_test_listener

    seen = []

    def fail():
        raise ImportError("not yet")

    strobe_test_listener.tell = fail
    when_imported(package, lambda: seen.append("there"))
    with pytest.raises(ImportError):
        __import__(package)
    assert seen == []
    strobe_test_listener.tell = lambda: None
    __import__(package)
    assert seen == ["there"]


def produce(count):
    """Runs in a process."""


class Producer(multiprocessing.Process):
    def run(self):
        """In a process, too."""


@pytest.fixture
def told(monkeypatch):
    """The places that are told while processes are started, and what went wrong."""
    base = multiprocessing.process.BaseProcess
    monkeypatch.setattr(base, "start", base.start)  # put back at the end
    _see_processes()
    facts = []
    made = SimpleNamespace(
        is_off=False, places=Places(lambda **fact: facts.append(fact)),
        broke=lambda where, error: facts.append({"error": error}),
    )  # fmt: skip
    monkeypatch.setattr(recorder, "current", made)
    return facts


def run(process):
    process.start()
    process.join(60)
    assert process.exitcode == 0


@pytest.mark.slow
def test_the_function_that_a_process_runs_is_kept(told):
    fork = multiprocessing.get_context("fork")
    run(fork.Process(target=functools.partial(produce, 3)))
    run(Producer())
    run(fork.Process(target=print))  # none of the user's: the line that started it
    run(fork.Process(target=produce, args=(4,)))  # told before
    lines = [(fact["what"], fact["line"], fact["function"]) for fact in told]
    assert lines == [
        ("process", produce.__code__.co_firstlineno, "produce"),
        ("process", Producer.run.__code__.co_firstlineno, "run"),
        ("process", run.__code__.co_firstlineno + 1, "run"),
    ]


@pytest.mark.slow
def test_a_process_is_started_whatever_goes_wrong_with_us(told):
    recorder.current.places = None
    run(multiprocessing.get_context("fork").Process(target=produce, args=(3,)))
    assert isinstance(told[0]["error"], AttributeError)
