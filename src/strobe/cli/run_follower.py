"""Follow a run while its script trains, so that little is left to do when the script has ended.

Windows are read ahead as they are written, by a process that takes only what nobody else wants of
the machine. And the summary is due when the recorder has said its last word: what the script
does after that is to take its own interpreter apart, and with torch that takes most of a second.
"""

import contextlib
import subprocess
import sys
from pathlib import Path

from strobe.cli import run_events
from strobe.model.journal import FACTS_FILE


class Follower:
    """Knows what is new in a run each time it is asked to look."""

    def __init__(self, run: Path, *, expects_windows: bool) -> None:
        self._run = run
        self._handed_over: set[Path] = set()
        self._reader = self._start_reader() if expects_windows else None
        _import_ahead()
        run_events.watch(run, FACTS_FILE)

    def look(self, script: int) -> bool:
        """Whether the script, a process, is the run's and has ended but for its interpreter."""
        if self._has_ended(script):
            self.close()
            return True
        self._read_ahead()
        return False

    def close(self) -> None:
        """Nothing is to be read ahead any more.

        Not waited for: on a busy machine a process of idle priority takes its time even to die.
        """
        if self._reader is not None and self._reader.poll() is None:
            self._reader.kill()

    def _has_ended(self, script: int) -> bool:
        from strobe.ingest.recording import rank_state
        from strobe.store.run_folder import rank_dirs

        raws = rank_dirs(self._run).items()
        ranks = [rank_state.describe(raw, number) for number, raw in raws]
        is_over = all(rank.state == "finished" for rank in ranks)
        return is_over and script in {rank.pid for rank in ranks}

    def _read_ahead(self) -> None:
        from strobe.ingest.recording.early_windows import WINDOWS_GLOB

        windows = set(self._run.glob(WINDOWS_GLOB))
        if windows <= self._handed_over:
            return
        self._handed_over |= windows
        if self._reader is None or self._reader.poll() is not None:
            self._reader = self._start_reader()
        assert self._reader.stdin is not None
        with contextlib.suppress(OSError):  # it has just ended, or is far behind: never mind
            self._reader.stdin.write(b".")

    def _start_reader(self) -> "subprocess.Popen[bytes]":
        """At once, for it takes as long to start as to read a window; it waits to be told."""
        from strobe.processes.process import environment

        # Threads of numpy's own would cost memory and help nobody.
        one_thread = dict.fromkeys(
            ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1"
        )
        module = "strobe.ingest.recording.early_windows"
        code = f"import sys; from {module} import main; main(*sys.argv[1:])"
        return subprocess.Popen(
            [sys.executable, "-c", code, str(self._run)], env=environment(**one_thread), bufsize=0,
            stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip


def _import_ahead() -> None:
    """While the script imports its own: what the summary will need is then there at once."""
    with contextlib.suppress(Exception):  # the summary will meet it again, and tell
        import strobe.reading
        import strobe.show.text.summary  # noqa: F401
        from strobe.ingest.recording import rank_state
        from strobe.store import columns

        rank_state.builder()
        columns.warm_up()
