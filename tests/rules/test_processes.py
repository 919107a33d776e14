import pytest

from tests.rules.skips import ROOT

TESTS = """
    import multiprocessing, os, subprocess, sys
    import pytest

    def start():
        subprocess.run([sys.executable, "-c", ""], check=True)

    def forked():
        pid = os.fork()
        if pid == 0:
            os._exit(0)
        os.waitpid(pid, 0)

    def spawned():
        process = multiprocessing.get_context("spawn").Process(target=print)
        process.start()
        process.join()

    @pytest.fixture(scope="module")
    def server():
        start()

    def test_plain():
        subprocess.run(["git", "--version"], check=True)

    @pytest.mark.slow
    @pytest.mark.parametrize("way", [start, forked, spawned])
    def test_marked(way, server):
        way()

    def test_uses_what_another_test_started(server):
        pass

    @pytest.mark.parametrize("way", [start, forked, spawned])
    def test_unmarked(way):
        way()

    def test_handles_every_error():
        try:
            start()
        except Exception:
            pass
"""


@pytest.mark.slow
def test_only_marked_tests_may_start_processes(pytester, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    pytester.makeini("[pytest]\nmarkers = slow: starts processes")
    pytester.makepyfile(test_it=TESTS)
    result = pytester.runpytest_subprocess("-p", "tests.rules.processes", "-p", "no:cacheprovider")
    result.assert_outcomes(passed=4, failed=5)
    result.stdout.fnmatch_lines(["*(by the fixture server). Mark it with @pytest.mark.slow"])
    result.stdout.fnmatch_lines(["FAILED *test_handles_every_error*"])
