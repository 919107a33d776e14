"""Functions that open a scope, drawn and recorded for real."""

import numpy as np
import pytest

import strobe
from strobe.ingest.formats import python_frames
from strobe.ingest.formats.kinds import KIND
from strobe.ingest.trace.spans import Spans
from tests.faults.processes import training
from tests.ingest.imports import imported, span, write
from tests.warm import python, recorded


def drawn(*rows: tuple[str, int, int]) -> Spans:
    kind, start, end = zip(*rows, strict=True)
    ts_ns = np.array(start)
    nothing = np.zeros(len(rows), dtype=np.int64)
    kinds = np.array([KIND[name] for name in kind])
    return Spans(ts_ns, np.array(end) - ts_ns, kinds, nothing, nothing)


def ends(*rows: tuple[str, int, int]) -> list[int]:
    spans = drawn(*rows)
    return (spans.ts_ns + python_frames.lengths(spans)).tolist()


def test_the_functions_that_open_a_scope_end_where_it_begins():
    caller = ("python", 0, 100)
    enter, inner = ("python", 10, 16), ("python", 11, 15)
    scope, called = ("annotation", 14, 90), ("python", 20, 30)
    assert ends(caller, enter, inner, scope, called) == [100, 14, 14, 90, 30]
    assert ends(caller, enter, inner, ("module", 14, 90), called) == [100, 14, 14, 90, 30]


def test_other_functions_keep_their_length():
    # A function that opens a scope and works in it for long, and an operator in a function.
    assert ends(("python", 0, 100), ("annotation", 5, 120)) == [100, 120]
    assert ends(("python", 0, 100), ("annotation", 5, 60), ("python", 50, 70)) == [100, 60, 70]
    assert ends(("python", 0, 10), ("op", 9, 30)) == [10, 30]
    assert ends(("annotation", 9, 30)) == [30]


@pytest.mark.slow
def test_operators_have_their_modules_with_python_stacks(tmp_path):
    pytest.importorskip("torch")
    script = training(tmp_path, "train(12)")
    counts = {}
    for option in ("--with-stack", "--no-with-stack"):
        folder = tmp_path / option
        done = python(*recorded(folder, option, script))
        assert done.returncode == 0, done.stderr
        counts[option] = (
            strobe.open_run(folder)
            .sql("""
            SELECT scope, name, count(*) FROM events
            WHERE kind = 'op' AND scope IS NOT NULL GROUP BY ALL ORDER BY ALL
        """)
            .fetchall()
        )
    assert {scope for scope, *_ in counts["--with-stack"]} > {"Sequential.0", "Sequential.2"}
    assert counts["--with-stack"] == counts["--no-with-stack"]


def test_an_imported_trace_nests_operators_in_annotations(tmp_path):
    """As torch writes it: `__enter__` and what it calls end after the annotation began."""

    python = "python_function"
    events = [
        span("train.py(1): <module>", 100, 900, python),
        span("torch/autograd/profiler.py(1): __enter__", 200, 214, python),
        span("<built-in method _record_function_enter_new>", 205, 213, python),
        span("mine", 212, 800, "user_annotation"),
        span("aten::mul", 300, 310),
    ]
    run = imported(write(tmp_path / "trace.json", events), tmp_path)
    rows = run.sql("""
        SELECT p.name FROM events e JOIN events p ON p.id = e.parent_id WHERE e.name = 'aten::mul'
    """).fetchall()
    assert rows == [("mine",)]
