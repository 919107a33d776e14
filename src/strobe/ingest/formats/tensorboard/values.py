"""The values of TensorBoard's events as rows: scalars as columns, everything else one by one."""

from typing import NamedTuple

import numpy as np

from strobe.ingest.formats.event_files.messages import Fields, floats
from strobe.ingest.formats.event_files.tensor_rows import add_bytes, add_image, add_tensor
from strobe.ingest.formats.event_files.value_rows import Batch, Row, Say, ValueRows, rows
from strobe.ingest.formats.tensorboard import hparams, tensors
from strobe.ingest.formats.tensorboard.histograms import from_proto, from_table
from strobe.ingest.formats.tensorboard.tensors import Unreadable
from strobe.ingest.formats.xplane.wire import BYTES, FIXED32, Broken, fields
from strobe.ingest.trace.codes import Array
from strobe.ingest.trace.metric_rows import Metrics

SOURCE = "tensorboard"

_SIMPLE, _OLD_HISTOGRAM, _IMAGE, _HISTOGRAM, _AUDIO, _TENSOR, _METADATA = 2, 3, 4, 5, 6, 8, 9
_SCALARS = "scalars"


class Plugin(NamedTuple):
    """What the first value of a tag says of all of them."""

    name: str = ""
    content: bytes = b""


class Values(ValueRows):
    """Takes the values of one folder of event files."""

    def __init__(self, metrics: Metrics, prefix: str, say: Say) -> None:
        super().__init__(metrics, SOURCE, say, prefix)
        self._plugins: dict[int, Plugin] = {}  # by the number of the tag

    def take(self, batch: Batch) -> None:
        found = batch.events
        self._take_metadata(batch)
        simple = found.parts.of(_SIMPLE, FIXED32)
        self.add_scalars(batch, simple.owner, floats(found.block, simple.start))
        tensor = self._tensor_scalars(batch)
        others = {
            _IMAGE: self.add_image, _HISTOGRAM: self._histogram, _AUDIO: self._audio,
            _OLD_HISTOGRAM: self._old_histogram,
        }  # fmt: skip
        for number, take in others.items():
            self.each(batch, found.parts.of(number, BYTES), take)
        self.each(batch, tensor, self._tensor)

    def _take_metadata(self, batch: Batch) -> None:
        """Of a tag's first value: later ones may have it again, or not."""
        metadata = batch.events.parts.of(_METADATA, BYTES).in_order()
        tags, first = np.unique(batch.tag[metadata.owner], return_index=True)
        is_new = np.array([tag >= 0 and tag not in self._plugins for tag in tags.tolist()], bool)
        for owner, start, end in rows(metadata.rows(first[is_new])):
            plugin = self._plugin(batch.events.block.text(start, end))
            self._plugins[int(batch.tag[owner])] = plugin
            if plugin.name == "hparams":
                self._hyperparameters(plugin)

    def _hyperparameters(self, plugin: Plugin) -> None:
        for row in hparams.hyperparameters(plugin.content, self.broken):
            self.metrics["hyperparameters"].add_row(**row, source=SOURCE)

    def _plugin(self, metadata: bytes) -> Plugin:
        name, content = "", b""
        data = [v for n, v in fields(metadata, self.broken) if n == 1 and isinstance(v, bytes)]
        for number, value in fields(b"".join(data), self.broken):
            if number == 1 and isinstance(value, bytes):
                name = value.decode("utf-8", "replace")
            elif number == 2 and isinstance(value, bytes):
                content = value
        return Plugin(name, content)

    def _tensor_scalars(self, batch: Batch) -> Fields:
        """Takes the scalars among the tensors; the others."""
        tensor = batch.events.parts.of(_TENSOR, BYTES)
        is_scalar = np.zeros(len(self.tags) + 1, dtype=np.bool_)  # the last is that of no tag
        is_scalar[[tag for tag, plugin in self._plugins.items() if plugin.name == _SCALARS]] = True
        mine = is_scalar[batch.tag[tensor.owner]]
        scalars = tensor.rows(mine)
        values, is_known = tensors.numbers(batch.events.block, scalars.start, scalars.end)
        self.add_scalars(batch, scalars.owner[is_known], values[is_known])
        mine[np.flatnonzero(mine)[~is_known]] = False
        return tensor.rows(~mine)

    def _histogram(self, data: bytes, row: Row, tag: int) -> None:
        self.add_histogram(from_proto(data, self.broken), row)

    def _old_histogram(self, data: bytes, row: Row, tag: int) -> None:
        self.say("histograms in the form of TensorFlow before version 1 are not read", 1)

    def _audio(self, data: bytes, row: Row, tag: int) -> None:
        sound = [v for n, v in fields(data, self.broken) if n == 4 and isinstance(v, bytes)]
        for encoded in sound[-1:]:
            add_bytes(self.metrics, encoded, "audio", **row)

    def _tensor(self, data: bytes, row: Row, tag: int) -> None:
        plugin = self._plugins.get(tag, Plugin()).name
        if plugin == "hparams" or row["tag"].removeprefix(self.prefix) in hparams.TAGS:
            return  # what they are is in the metadata
        try:
            tensor = tensors.decode(data)
        except (Unreadable, Broken) as error:
            self.say(f"a tensor was left out: {error or 'it is damaged'}", 1)
            return
        if tensor.dtype == "bytes":
            self._strings(tensor.array.ravel().tolist(), row, plugin)
        else:
            self._numbers(tensor.array, tensor.dtype, row, tag, plugin)

    def _numbers(self, array: Array, dtype: str, row: Row, tag: int, plugin: str) -> None:
        if plugin == "histograms":
            self.add_histogram(from_table(array), row)
        elif plugin == _SCALARS and array.size == 1:
            self.add_scalar(tag, float(np.real(array).ravel()[0]), row)
        else:
            name = None if plugin in ("", "tensor") else plugin
            add_tensor(self.metrics, array, dtype, name, **row)

    def _strings(self, strings: list[bytes], row: Row, plugin: str) -> None:
        if plugin == "images":
            width, height = (*map(_whole, strings[:2]), None, None)[:2]
            for index, encoded in enumerate(strings[2:]):
                add_image(self.metrics, encoded, (width, height, None), index=index, **row)
        elif plugin == "audio":
            for sound in strings[:: 2 if len(strings) > 1 else 1]:  # labels are between them
                add_bytes(self.metrics, sound, "audio", **row)
        elif plugin in ("text", ""):
            text = b"\n".join(strings).decode("utf-8", "replace")
            self.metrics["texts"].add_row(text=text, **row)
        else:
            for one in strings:
                add_bytes(self.metrics, one, plugin, **row)


def _whole(text: bytes) -> int | None:
    return int(text) if text.isdigit() and len(text) < 10 else None
