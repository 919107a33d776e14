"""When a package counts as imported. What then begins is tests/loops/test_loops.py."""

import sys

import pytest

from strobe.collect.autostart import when_imported


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
