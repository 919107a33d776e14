"""Whoever waits hears of what the processes of a run write, and of nothing else."""

import signal

from strobe.cli import run_events


def heard() -> bool:
    """Whether a SIGCHLD comes within a while, and no more after it."""
    first = signal.sigtimedwait({signal.SIGCHLD}, 10)
    while signal.sigtimedwait({signal.SIGCHLD}, 0.1) is not None:
        pass
    return first is not None


def test_news_of_ranks_facts_and_windows(tmp_path):
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCHLD})
    try:
        assert run_events.watch(tmp_path, "facts.jsonl")
        raw = tmp_path / "rank_0" / "raw"
        raw.mkdir(parents=True)
        assert heard()
        (raw / "facts.jsonl").write_text("{}\n")
        assert heard()
        with (raw / "facts.jsonl").open("a") as file:
            file.write("{}\n")
            file.flush()
            assert heard()
        (raw / ".packed").write_text("half")
        heard()
        (raw / ".packed").rename(raw / "window-0001.trace.json.gz")
        assert heard()
        (raw / "window-0001.trace.json.gz").write_bytes(b"grows")
        assert signal.sigtimedwait({signal.SIGCHLD}, 0.3) is None  # nobody need look at that
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def test_where_nobody_tells_it_is_said(tmp_path):
    assert not run_events.watch(tmp_path / "absent", "facts.jsonl")
