"""The metrics of a run as MindSpore's summary files: values in `_MS`, lineage in `_lineage`."""

import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from strobe.messages import Message
from strobe.show.atomic import whole_folder
from strobe.show.event_files import lineage, summaries
from strobe.show.event_files.arrays import Array, array_of, count_rounded, is_bytes
from strobe.show.event_files.columns import Texts
from strobe.show.event_files.folders import (
    folder_of_rank,
    is_folder_of_rank,
    process_of,
    started_s,
)
from strobe.show.event_files.landscapes import METADATA, Landscapes
from strobe.show.event_files.omissions import Omissions
from strobe.show.event_files.records import EventFile
from strobe.show.event_files.run_metrics import RankMetrics, Row, rank_numbers
from strobe.store.run import Run

NAME = "mindspore_summary"
DOC = "a folder with the training metrics and lineage as MindSpore's summary files"

_OWN_FILE = re.compile(r".*_MS|.*_lineage|export_\d+", re.DOTALL)


def is_part(path: Path) -> bool:
    return _OWN_FILE.fullmatch(path.name) is not None or is_folder_of_rank(path)


def write(run: Run, path: Path) -> list[Message]:
    """What the format cannot hold."""
    omissions, ranks = Omissions(), rank_numbers(run)
    with whole_folder(path) as folder:
        for rank in ranks:
            host, _ = process_of(run.manifest, rank)
            started = started_s(run.manifest)
            home = folder_of_rank(folder, rank, ranks)
            metrics = RankMetrics(run, rank, omissions)
            # A resumed training writes a file of its own, and readers take it for one by that.
            for number, attempt in enumerate(metrics.attempts()):
                with EventFile(home / _file_name(started + number, host, "_MS")) as file:
                    _Writer(metrics, file, home / f"export_{started + number}").write(attempt)
            _write_lineage(metrics, home / _file_name(started, host, "_lineage"))
    return omissions.messages()


def _file_name(unix_s: int, host: str, suffix: str) -> str:
    return f"events.out.events.summary.{unix_s}.{host}{suffix}"


def _write_lineage(metrics: RankMetrics, path: Path) -> None:
    """There is no file without a fact."""
    events = list(lineage.events(metrics))
    if events:
        with EventFile(path) as file:
            for event in events:
                file.add(event)


class _Writer:
    """Writes the values of one attempt of a rank."""

    def __init__(self, metrics: RankMetrics, file: EventFile, exact: Path) -> None:
        self._metrics, self._file, self._exact = metrics, file, exact
        self._omissions = metrics.omissions

    def write(self, attempt: int) -> None:
        self._file.add(summaries.version(self._metrics.started_s))
        tags = Texts(self._metrics.scalar_tags)
        for found in self._metrics.scalars(attempt):
            count_rounded(found.value, self._omissions)
            self._file.add_columns(summaries.scalar_events(found, tags), len(found.tag))
        landscapes = Landscapes(self._metrics)
        for events in (
            self._histograms(attempt), self._images(attempt),
            self._tensors(attempt, landscapes), self._landscapes(attempt, landscapes),
        ):  # fmt: skip
            for event in events:
                self._file.add(event)

    def _histograms(self, attempt: int) -> Iterator[bytes]:
        for row in self._metrics.rows("histograms", attempt):
            yield summaries.event(row, summaries.histogram(row, self._omissions))

    def _images(self, attempt: int) -> Iterator[bytes]:
        for row in self._metrics.rows("images", attempt):
            data = self._metrics.file(row)
            if data is None:
                continue
            tag = row["tag"]
            if row["index"]:
                self._omissions.add("image-batches")
                tag = f"{tag}/{row['index']}"
            yield summaries.event(row, summaries.image(row, data), tag)

    def _tensors(self, attempt: int, landscapes: Landscapes) -> Iterator[bytes]:
        for row in self._metrics.rows("tensors", attempt):
            if landscapes.take(row):
                continue
            array = array_of(self._metrics, row)
            if array is None:
                continue
            if is_bytes(array, row):
                if row["plugin"] == "mindspore_graph":
                    yield summaries.graph_event(row, array.tobytes())
                else:
                    self._omissions.add("plugin-data")
                continue
            self._omissions.add("plugins", row["plugin"] is not None)
            self._omissions.add("tensor-types", row["dtype"] == "bfloat16")
            if array.dtype != np.float32:
                self._write_exact(row, array)
            yield summaries.event(row, summaries.tensor(row, array))

    def _write_exact(self, row: Row, array: Array) -> None:
        """As `export_options` of SummaryCollector does: the event has float32 only."""
        name = summaries.exact_name(row)
        if name is None:
            self._omissions.add("long-tags")
            return
        folder = self._exact / "tensor"
        for each in (self._exact, folder):
            each.mkdir(exist_ok=True)
        np.save(folder / name, array, allow_pickle=False)

    def _landscapes(self, attempt: int, landscapes: Landscapes) -> Iterator[bytes]:
        metadata = {}
        for row in self._metrics.rows("texts", attempt):
            found = landscapes.metadata(row)
            if found is None:
                self._omissions.add("texts")
            else:
                metadata[row["tag"].removesuffix(METADATA), row["step"]] = found
        yield from landscapes.events(metadata)
