"""The metrics of a run as event files, which TensorBoard opens: tensorboard --logdir FOLDER."""

from collections.abc import Iterator
from pathlib import Path

from strobe.messages import Message
from strobe.show.atomic import whole_folder
from strobe.show.event_files import tensorboard as events
from strobe.show.event_files.arrays import array_of, count_rounded, is_bytes
from strobe.show.event_files.columns import Texts
from strobe.show.event_files.folders import (
    folder_of_rank,
    is_folder_of_rank,
    process_of,
    started_s,
)
from strobe.show.event_files.omissions import Omissions
from strobe.show.event_files.records import EventFile
from strobe.show.event_files.run_metrics import (
    OF_TAGS,
    RankMetrics,
    Row,
    rank_numbers,
)
from strobe.show.event_files.tensorboard import Value
from strobe.store.run import Run

NAME = "tensorboard"
DOC = "a folder with the training metrics as event files, for TensorBoard"


def is_part(path: Path) -> bool:
    return "tfevents" in path.name or is_folder_of_rank(path)


def write(run: Run, path: Path) -> list[Message]:
    """What the format cannot hold."""
    omissions, ranks = Omissions(), rank_numbers(run)
    with whole_folder(path) as folder:
        for rank in ranks:
            host, pid = process_of(run.manifest, rank)
            name = f"events.out.tfevents.{started_s(run.manifest):010}.{host}.{pid}.0"
            with EventFile(folder_of_rank(folder, rank, ranks) / name) as file:
                _Writer(RankMetrics(run, rank, omissions), run, file).write()
    return omissions.messages()


class _Writer:
    """Writes the file of one rank."""

    def __init__(self, metrics: RankMetrics, run: Run, file: EventFile) -> None:
        self._metrics, self._run, self._file = metrics, run, file
        self._omissions = metrics.omissions
        self._kinds = metrics.kinds_of_tags()
        self._tags = Texts(metrics.scalar_tags)
        self._meshes: dict[str, int] = {}

    def write(self) -> None:
        self._count_renamed_tags()
        self._file.add(events.version(self._metrics.started_s))
        for value in events.hyperparameters(self._metrics, self._run.manifest):
            self._file.add(value.event())
        self._omissions.add("lineage", len(self._metrics.facts("lineage")))
        for number, attempt in enumerate(self._metrics.attempts()):
            step = self._metrics.first_step(attempt)
            if number and step is not None:
                self._file.add(events.restart(self._metrics.started_s, step))
            self._write_attempt(attempt)

    def _write_attempt(self, attempt: int) -> None:
        for found in self._metrics.scalars(attempt):
            count_rounded(found.value, self._omissions)
            self._file.add_columns(events.scalar_events(found, self._tags), len(found.tag))
        for values in (
            self._histograms(attempt), self._images(attempt), self._texts(attempt),
            self._tensors(attempt),
        ):  # fmt: skip
            for value in values:
                self._file.add(value.event())

    def _histograms(self, attempt: int) -> Iterator[Value]:
        for row in self._metrics.rows("histograms", attempt):
            self._omissions.add("not-finite-in-histograms", events.not_finite(row))
            yield self._value(row, events.histogram(row, self._tag(row, "histograms")))

    def _images(self, attempt: int) -> Iterator[Value]:
        """Those that were logged together are one value."""
        batch: list[Row] = []
        for row in self._metrics.rows("images", attempt):
            if batch and (row["index"] == 0 or not _are_together(batch[-1], row)):
                yield from self._image_batch(batch)
                batch = []
            batch.append(row)
        yield from self._image_batch(batch)

    def _image_batch(self, batch: list[Row]) -> Iterator[Value]:
        found = [(row, data) for row in batch
                 if (data := self._metrics.file(row)) is not None]  # fmt: skip
        if not found:
            return
        rows, encoded = [row for row, _ in found], [data for _, data in found]
        tag = self._tag(rows[0], "images")
        if len(rows) == 1:
            yield self._value(rows[0], events.image(rows[0], tag, encoded[0]))
        else:
            yield self._value(rows[0], events.image_batch(rows, tag, encoded))

    def _texts(self, attempt: int) -> Iterator[Value]:
        for row in self._metrics.rows("texts", attempt):
            yield self._value(row, events.text(row, self._tag(row, "texts")))

    def _tensors(self, attempt: int) -> Iterator[Value]:
        self._find_meshes()
        for row in self._metrics.rows("tensors", attempt):
            if row["plugin"] == "mindspore_graph":
                self._omissions.add("mindspore-graphs")
                continue
            array = array_of(self._metrics, row)
            if array is None:
                continue
            graph = events.graph_event(row, array.tobytes()) if is_bytes(array, row) else None
            if graph is not None:
                self._file.add(graph)
                continue
            parts = self._meshes.get(events.mesh_part(row["tag"])[0], 0)
            yield self._value(row, events.tensor(row, self._tag(row, "tensors"), array, parts))

    def _find_meshes(self) -> None:
        """Which parts each mesh has: every part names all of them."""
        for tag in self._kinds:
            name, part = events.mesh_part(tag)
            self._meshes[name] = self._meshes.get(name, 0) | part

    def _value(self, row: Row, message: bytes) -> Value:
        return Value(row["wall_time"], row["step"], message)

    def _tag(self, row: Row, table: str) -> str:
        """TensorBoard shows one kind of value per tag: the others get theirs as a suffix."""
        tag: str = row["tag"]
        return tag if self._first_kind(tag) == table else f"{tag}/{table}"

    def _first_kind(self, tag: str) -> str:
        return min(self._kinds[tag], key=OF_TAGS.index)

    def _count_renamed_tags(self) -> None:
        self._omissions.add("renamed-tags", sum(len(kinds) > 1 for kinds in self._kinds.values()))


def _are_together(a: Row, b: Row) -> bool:
    return all(a[name] == b[name] for name in ("tag", "step", "ts_ns")) and b["index"] > a["index"]
