from pathlib import Path

import pytest

from tests.rules import skips
from tests.rules.skips import LIST, ROOT, Skip, complaint, listed

ALLOWED = [
    Skip("any machine", "tests/a/*", "no network: *"),
    Skip("never", "tests/a/test_b.py", "shared data absent"),
]


@pytest.fixture(autouse=True)
def never(monkeypatch):
    monkeypatch.setitem(skips.CONDITIONS, "never", lambda: False)


def test_a_skip_of_the_list_is_fine():
    assert complaint("tests/a/test_b.py", "Skipped: no network: timed out", ALLOWED) is None


@pytest.mark.parametrize(
    ("file", "reason"),
    [("tests/a/test_b.py", "broken today"), ("tests/c/test_d.py", "no network: timed out")],
)
def test_any_other_skip_is_named(file, reason):
    assert complaint(file, reason, ALLOWED) == (
        f"skipped: {reason}\nThis skip is not listed in tests/skips.txt."
    )


def test_a_skip_for_a_reason_that_does_not_hold_is_named():
    found = complaint("tests/a/test_b.py", "shared data absent", ALLOWED)
    assert found is not None and found.endswith("allows this for: never. That is not the case.")


def test_the_list_names_conditions_and_files_that_there_are():
    for skip in listed(LIST.read_text(encoding="utf-8")):
        assert skip.when in skips.CONDITIONS, skip
        assert [*ROOT.glob(skip.file)], skip


@pytest.mark.slow
def test_a_skip_that_is_not_listed_fails(pytester, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(Path(ROOT)))
    pytester.makepyfile(
        test_it="""
        import pathlib, pytest
        from tests.rules import skips
        skips.ROOT = pathlib.Path(__file__).parent
        skips._SKIPS[:] = [skips.Skip("any machine", "test_it.py", "listed")]

        def test_listed():
            pytest.skip("listed")

        @pytest.mark.skip(reason="because")
        def test_marked():
            pass

        @pytest.fixture
        def thing():
            pytest.skip("not here")

        def test_fixture(thing):
            pass

        @pytest.mark.xfail(reason="known")
        def test_known():
            raise AssertionError
        """,
        test_module="import pytest; pytest.skip('all of it', allow_module_level=True)",
    )
    result = pytester.runpytest_subprocess("-p", "tests.rules.skips", "test_it.py")
    result.assert_outcomes(skipped=1, xfailed=1, errors=2)
    result = pytester.runpytest_subprocess(
        "-p", "tests.rules.skips", "test_it.py", "test_module.py"
    )
    result.assert_outcomes(errors=1)
