"""MegEngine: the timeline of its Profiler, and the profile of a static graph.

`<pid>.chrome_timeline.json` (megengine_timeline.py tells what is read of it), of one process or of
the forked ranks of a launcher side by side; and the JSON of `get_profile()` or `load_and_run`
(megengine_static.py). Not read: memory_flow.svg.
"""

import re
from collections.abc import Iterator
from pathlib import Path

from strobe.errors import UnreadableTrace
from strobe.ingest.formats import compressed
from strobe.ingest.formats.megengine import static as megengine_static
from strobe.ingest.formats.megengine import timeline as megengine_timeline
from strobe.ingest.formats.megengine.document import open_document
from strobe.ingest.importing import sources
from strobe.ingest.importing.sources import Found, Peek, Source
from strobe.ingest.trace.spans import Vocabulary
from strobe.ingest.trace.trace import Trace

NAME = "MegEngine"

_STATIC = re.compile(
    rb'\s*\{\s*"(?:profiler"\s*:\s*\{\s*"(?:device|host|opr_footprint|opr_internal_pf)"'
    rb'|graph_exec"\s*:\s*\{\s*"(?:operator|var|mem_chunk|comp_seq)")\s*:'
)
_TIMELINE = re.compile(rb'\s*\{\s*"traceEvents"\s*:\s*\[')
_MARKS = re.compile(
    rb'"name"\s*:\s*"(?:gpu_usgae_ratio|train_time_ratio|nr_redunant_tensor|OpDispatch)"'
    rb'|"cat"\s*:\s*"(?:OpDispatch|TensorLink)"'
)
# Before 1.6 the first event told the time; merging the files of all ranks dropped it.
_OLD_MARK = re.compile(rb'"name"\s*:\s*"Metadata"[^{}]*\{\s*"localTime"\s*:')
_MERGED_NAME = re.compile(r"merge\.chrome_timeline\.json(\.gz|\.zst)?\Z")
_PROCESS_NAME = re.compile(r"(\d{1,12})\.chrome_timeline\.json(\.gz|\.zst)?\Z")
_RANK = re.compile(rb'"__name__"\s*:\s*"CollectiveComm"[^{}]*?"rank"\s*:\s*"(\d{1,7})"')
_SPAN = re.compile(rb'"ph"\s*:\s*"[BX]"')


def claim(folder: Path) -> list[Found]:
    """The timelines of processes that lie side by side: ranks in the order of their pids."""
    found = []
    for files in _timelines(folder):
        peeks = {pid: sources.peek(path) for pid, path in files.items() if pid is not None}
        ours = {pid: peek for pid, peek in peeks.items() if recognise(peek)}
        if len(ours) > 1:
            found += _ranks(ours, files.get(None))
    return found


def _timelines(folder: Path) -> Iterator[dict[int | None, Path]]:
    """Of each folder: its timelines by pid, the merged one by None."""
    by_folder: dict[Path, dict[int | None, Path]] = {}
    for path in sources.files_below(folder):
        process = _PROCESS_NAME.match(path.name)
        if process or _MERGED_NAME.match(path.name):
            pid = int(process.group(1)) if process else None
            by_folder.setdefault(path.parent, {})[pid] = path
    yield from by_folder.values()


def _ranks(peeks: dict[int, Peek], merged: Path | None) -> list[Found]:
    # The launcher that the ranks were forked from leaves a file without a single span.
    working = [pid for pid, peek in peeks.items() if not peek.is_whole or _SPAN.search(peek.head)]
    working = sorted(working or peeks)
    idle = [peek.path for pid, peek in peeks.items() if pid not in working]
    ignored = (*idle, merged) if merged else tuple(idle)
    found = []
    for number, pid in enumerate(working):
        said = _RANK.search(peeks[pid].head)
        rank = int(said.group(1)) if said else number
        began = megengine_timeline.began_unix_ns(peeks[pid].path)
        found.append(Found((peeks[pid].path,), rank, began, ignored if number == 0 else ()))
    return found


def recognise(peek: Peek) -> Found | None:
    if _STATIC.match(peek.head):
        return Found((peek.path,))
    if not _TIMELINE.match(peek.head):
        return None
    is_merged = bool(_MERGED_NAME.match(peek.path.name)) and b'"ph":"B"' in peek.head
    is_merged &= not _OLD_MARK.search(peek.head)
    if not (_MARKS.search(peek.head) or _OLD_MARK.search(peek.head[:4096]) or is_merged):
        return None
    if is_merged:
        ranks = tuple(range(len(megengine_timeline.merged_pids(peek.path))))
        return Found((peek.path,), first_unix_ns=0, ranks=ranks)
    said = _RANK.search(peek.head)
    began = megengine_timeline.began_unix_ns(peek.path)
    return Found((peek.path,), int(said.group(1)) if said else None, began)


def read(source: Source, words: Vocabulary) -> Trace:
    if _STATIC.match(compressed.beginning(source.path, 4096)):
        return _read_static(source, words)
    return megengine_timeline.read(source, words)


def _read_static(source: Source, words: Vocabulary) -> Trace:
    trace = Trace(words)
    document = open_document(source.path, trace.said)
    if not document.sections("graph_exec") and not document.sections("profiler"):
        raise UnreadableTrace.of("errors/traces.no-profile", where=str(source.path))
    trace.spans.append(megengine_static.spans(document, words, source.number))
    trace.about.frameworks = {"megengine": ""}
    return trace
