"""A window of a recording made here: the files that MindSpore's profiler left, in a folder.

Without a device these are the runs of operators and the curve of memory; steps are those of the
journal. With one, what its own analysis made of them is read as an import would read it.
"""

from pathlib import Path
from typing import Any

import numpy as np

from strobe.errors import UnreadableTrace
from strobe.ingest.formats.ascend import reader as ascend_reader
from strobe.ingest.formats.mindspore import arguments, cells
from strobe.ingest.formats.mindspore import ops as mindspore_ops
from strobe.ingest.formats.mindspore.files import by_kind
from strobe.ingest.formats.mindspore.ops import Operators
from strobe.ingest.formats.mindspore.work import CONVOLUTIONS
from strobe.ingest.importing.sources import Source
from strobe.ingest.recording import option_filter
from strobe.ingest.recording.windows import Window
from strobe.ingest.trace import spans as spans_of
from strobe.ingest.trace.codes import Array
from strobe.ingest.trace.problems import Problems
from strobe.ingest.trace.spans import Spans, Vocabulary
from strobe.ingest.trace.trace import Trace

# Arguments of operators that an option leaves out.
_LEFT_OUT = {
    "record_shapes": ("dims", "flops"), "with_flops": ("flops",), "modules": ("scope",),
}  # fmt: skip


def read(
    path: Path, number: int, started_unix_ns: int, words: Vocabulary, said: Problems,
    options: dict[str, Any],
) -> Window:  # fmt: skip
    """A window in run time, its texts entered into the rank's vocabulary."""
    trace = _of_device(path, number, words, said) or _of_host(path, number, words, said)
    trace.shift(-started_unix_ns)
    spans = _without(
        option_filter.spans(spans_of.joined(list(trace.spans)), options, words), options
    )
    return Window(number, spans, trace.memory, list(trace.counters), trace.queues, trace.flows)


def _of_host(path: Path, number: int, words: Vocabulary, said: Problems) -> Trace:
    trace = Trace(words, said)
    files = by_kind([file for file in sorted(path.rglob("*")) if file.is_file()])
    runs = files.get("cpu_op_execute_timestamp")
    if runs is None:
        said.add(path.name, "its operators are missing: MindSpore did not write them")
        return trace
    operators = mindspore_ops.read(runs, files.get("cpu_framework"), said)
    calls = cells.read(files["strobe_cells"], said) if "strobe_cells" in files else None
    if calls is not None and "strobe_arguments" in files:
        arguments.put(operators, calls, arguments.read(files["strobe_arguments"], said))
    spans = mindspore_ops.spans(operators, words, number, None)
    if calls is not None:
        _put_scopes(spans, cells.scopes(operators, calls, words))
    if "strobe_gradients" in files:
        gradients = cells.scopes(operators, cells.read(files["strobe_gradients"], said), words)
        spans.args["backward"] = np.where(gradients >= 0, 1, spans.args["backward"])
        _put_scopes(spans, gradients)
        _put_work(spans, operators)
    trace.spans.append(spans)
    if "cpu_ms_memory_record" in files:
        trace.counters += mindspore_ops.memory(files["cpu_ms_memory_record"], words, said)
    return trace


def _put_scopes(spans: Spans, called: Array) -> None:
    """Where the names of operators do not tell."""
    spans.args["scope"] = np.where(spans.args["scope"] < 0, called, spans.args["scope"])


def _put_work(spans: Spans, operators: Operators) -> None:
    """Each gradient of a product, or of a convolution, is as much work as that itself: known where
    all those of a cell's forward pass are the same work."""
    kinds = [m.type for m in operators.meanings]
    for family in (arguments.PRODUCTS, CONVOLUTIONS):
        scope, flops = spans.args["scope"], spans.args["flops"]
        known = np.array([*(kind in family for kind in kinds), False])[operators.name] & (
            scope >= 0
        )
        forward = known & (spans.args["backward"] == 0)
        least = np.full(scope.max(initial=0) + 1, np.iinfo(np.int64).max)
        most = np.full(len(least), -1, dtype=np.int64)
        np.minimum.at(least, scope[forward], flops[forward])
        np.maximum.at(most, scope[forward], flops[forward])
        agreed = np.where(least == most, most, -1)
        spans.args["flops"] = np.where(known & ~forward & (flops < 0), agreed[scope], flops)


def _of_device(path: Path, number: int, words: Vocabulary, said: Problems) -> Trace | None:
    """None where no device was recorded."""
    try:
        found = ascend_reader.claim(path)
        if not found:
            return None
        source = Source(ascend_reader.NAME, [str(file) for file in found[0].paths], number)
        trace = ascend_reader.read(source, words)
    except UnreadableTrace as error:
        said.add(path.name, error.what)
        return Trace(words)
    said.update(trace.said)
    return trace


def _without(spans: Spans, options: dict[str, Any]) -> Spans:
    for option, left_out in _LEFT_OUT.items():
        if options.get(option) is False:
            for name in left_out:
                spans.args[name] = np.full(len(spans), -1, dtype=np.int64)
    return spans
