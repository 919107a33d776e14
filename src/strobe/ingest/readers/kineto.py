"""torch.profiler's Chrome JSON (Kineto), of the host and of any device."""

import re
from pathlib import Path

from strobe.ingest import kineto, kineto_spans
from strobe.ingest.sources import Found, Peek, Source
from strobe.ingest.spans import Vocabulary
from strobe.ingest.trace import Trace

NAME = "torch.profiler"

_MARKS = re.compile(
    rb'"(?:schemaVersion|deviceProperties|distributedInfo|baseTimeNanoseconds)"\s*:'
    rb'|"cat"\s*:\s*"(?:cpu_op|Operator|python_function|user_annotation|cuda_runtime|Runtime'
    rb'|kernel|Kernel|gpu_memcpy)"'
)
_IS_JSON = re.compile(rb"\s*[\[{]")
_RANK = re.compile(rb'"distributedInfo"\s*:\s*\{[^{}]*?"rank"\s*:\s*(\d+)')
_RANK_IN_NAME = re.compile(r"rank[-_]?(\d+)", re.IGNORECASE)


def claim(folder: Path) -> list[Found]:
    return []


def recognise(peek: Peek) -> Found | None:
    if not _IS_JSON.match(peek.head) or not _MARKS.search(peek.head):
        return None
    said = _RANK.search(peek.head) or _RANK_IN_NAME.search(peek.path.name)
    return Found((peek.path,), rank=int(said.group(1)) if said else None)


def read(source: Source, words: Vocabulary) -> Trace:
    found = kineto.read(source.path)
    trace = Trace(words, found.problems, is_unix=True)
    trace.spans.append(kineto_spans.spans(found, words, source.number))
    trace.memory.append(kineto_spans.memory(found, words))
    return trace
