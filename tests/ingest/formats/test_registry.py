"""Which readers are asked about a file, and which are loaded for it."""

import subprocess
import sys

import pytest

from strobe.ingest.formats.registry import READERS
from tests.ingest.imports import span, write

# The beginning of a file that each of the particular readers knows.
BEGINNINGS = {
    "Strobe's timeline": b'{"otherData": {"strobe_timeline": 1, "ranks": [0]',
    "MegEngine": b'{"traceEvents": [{"name": "gpu_usgae_ratio", "ph": "C"',
    "Ascend profiler": b'[{"ph": "X", "name": "MatMul", "ts": "1700000000000000.123"',
    "MindSpore profiler": b"Default/op1;HostCpuOps;12,3",
}


def test_every_reader_is_listed_by_its_own_name():
    assert [READERS.named(reader.NAME) for reader in READERS] == list(READERS)
    assert READERS.named("no such format") is None


@pytest.mark.parametrize("name", BEGINNINGS)
def test_a_reader_is_asked_about_what_it_knows(name):
    assert READERS.named(name) in READERS.that_may_read(BEGINNINGS[name])


@pytest.mark.slow
def test_a_trace_of_torch_is_imported_with_what_that_needs_and_no_more(tmp_path):
    step = [
        ("aten::mm", "cpu_op"),
        ("autograd::engine::evaluate_function: MmBackward0", "cpu_op"),
        ("Optimizer.step#SGD.step", "user_annotation"),
    ]
    events = [span(step[n % 3][0], n * 10, n * 10 + 5, step[n % 3][1]) for n in range(9)]
    path = write(tmp_path / "one.json", events)
    code = (
        "import sys; from strobe.cli import main\n"
        f"assert main(['import', {str(path)!r}, '-o', {str(tmp_path / 'run')!r}, '-q']) == 0\n"
        "print(*sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split())
    others = {
        "duckdb",
        "numpy.ma",
        "rich",
        "tarfile",
        "zipfile",
        "logging",
        "subprocess",
        "strobe.show",
    }
    others |= {f"strobe.ingest.{name}" for name in ("ascend", "chrome", "mindspore", "megengine")}
    assert not loaded & others
    assert "strobe.ingest.formats.kineto.reader" in loaded


@pytest.mark.slow
def test_the_command_ends_with_its_exit_code_and_all_it_said(tmp_path):
    path = write(tmp_path / "one.json", [span("aten::mm", 0, 5)])
    command = [sys.executable, "-m", "strobe", "import", str(path), "-o", str(tmp_path / "run")]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "imported 1 events from 1 file" in done.stderr
    assert done.stdout
    again = subprocess.run(command, capture_output=True, text=True, check=False)
    assert again.returncode == 2
    assert "already contains a run" in again.stderr
