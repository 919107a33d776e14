"""`strobe.SummaryWriter`: TensorBoard's writer by name and signature, into a run of Strobe."""

import functools
import io
import json
import os
import platform
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from strobe.callbacks.summary import media
from strobe.callbacks.summary.destination import Destination, is_recording, monotonic_of
from strobe.collect.metrics.arrays import as_array, image_job, tensor_job
from strobe.collect.metrics.histograms import histogram_job
from strobe.collect.notices import notice
from strobe.model.metric_journal import HISTOGRAM

Method = TypeVar("Method", bound=Callable[..., Any])

TOOL = "SummaryWriter"
# As TensorBoard.
_MOST_THRESHOLDS = 127

# Folders of the writers of this process, in the order of their first value into a shared run.
_folders: list[Path] = []


def _guarded(method: Method) -> Method:
    """A value that cannot be logged is reported once, and training goes on."""

    @functools.wraps(method)
    def call(self: "SummaryWriter", *given: Any, **more: Any) -> Any:
        if self._to.run is None:  # a recording may have begun since it was created
            self._to.source = self._source()
        name = f"SummaryWriter.{method.__name__}"
        return self._to.guarded(name, lambda: method(self, *given, **more))

    return call  # type: ignore[return-value]


class SummaryWriter:
    """Logs to the run that records this process, or to a run of its own in `log_dir`.

    Several writers in one recorded run keep their series apart by the column `source`.
    """

    def __init__(
        self, log_dir: str | os.PathLike[str] | None = None, comment: str = "",
        purge_step: int | None = None, max_queue: int = 10, flush_secs: int = 120,
        filename_suffix: str = "",
    ) -> None:  # fmt: skip
        """`max_queue`, `flush_secs` and `filename_suffix` have no effect: a value is in a file
        within 50 ms. Nor has `purge_step`: what was logged before a restart is another run.
        """
        if not log_dir:
            now = time.strftime("%b%d_%H-%M-%S")
            log_dir = os.path.join("runs", f"{now}_{platform.node()}{comment}")
        self.log_dir = os.fspath(log_dir)
        self.purge_step, self.max_queue, self.flush_secs = purge_step, max_queue, flush_secs
        self.filename_suffix = filename_suffix
        self._folder = Path(os.path.abspath(self.log_dir))
        self._to = Destination(TOOL, self._folder)

    def _source(self) -> str:
        """Of a run that several writers share, all but the first are named by their folders."""
        if not is_recording():
            return TOOL
        if self._folder not in _folders:
            _folders.append(self._folder)
        return TOOL if _folders[0] == self._folder else f"{TOOL} {self.log_dir}"

    @property
    def run_path(self) -> Path | None:
        """The folder of the run, once something was logged."""
        return self._to.run

    def get_logdir(self) -> str:
        return self.log_dir

    @_guarded
    def add_scalar(
        self, tag: str, scalar_value: Any, global_step: int | None = None,
        walltime: float | None = None, new_style: bool = False, double_precision: bool = False,
    ) -> None:  # fmt: skip
        """Always with the precision of a double."""
        self._to.scalars({tag: scalar_value}, global_step, monotonic_of(walltime))

    @_guarded
    def add_scalars(
        self, main_tag: str, tag_scalar_dict: Mapping[str, Any], global_step: int | None = None,
        walltime: float | None = None,
    ) -> None:  # fmt: skip
        """As the tags `main_tag/KEY`."""
        values = {f"{main_tag}/{key}": value for key, value in tag_scalar_dict.items()}
        self._to.scalars(values, global_step, monotonic_of(walltime))

    @_guarded
    def add_tensor(
        self, tag: str, tensor: Any, global_step: int | None = None, walltime: float | None = None
    ) -> None:
        self._tensor(tag, tensor, global_step, walltime)

    @_guarded
    def add_histogram(
        self, tag: str, values: Any, global_step: int | None = None, bins: Any = "tensorflow",
        walltime: float | None = None, max_bins: int | None = None,
    ) -> None:  # fmt: skip
        """Bins of equal width: `bins` if that is a number, otherwise as many as suit the values."""
        count = bins if type(bins) is int else max_bins
        made = histogram_job(tag, values, global_step, count, self._to.source)
        self._to.histogram(*made, monotonic_of(walltime))

    @_guarded
    def add_histogram_raw(
        self, tag: str, min: float, max: float, num: float, sum: float, sum_squares: float,
        bucket_limits: Any, bucket_counts: Any, global_step: int | None = None,
        walltime: float | None = None,
    ) -> None:  # fmt: skip
        """`bucket_limits` are the right edges of the bins; the first one begins at `min`."""
        limits = [float(one) for one in as_array(bucket_limits).tolist()]
        counts = [int(one) for one in as_array(bucket_counts).tolist()]
        if len(limits) != len(counts):
            raise ValueError(f"{len(limits)} bucket_limits for {len(counts)} bucket_counts")
        edges, counts = media.bins(float(min), float(max), limits, counts)
        record = {
            "tag": tag, "step": global_step, "count": int(num), "nan_count": 0,
            "positive_infinity_count": 0, "negative_infinity_count": 0, "min": float(min),
            "max": float(max), "sum": float(sum), "sum_squares": float(sum_squares),
            "edges": json.dumps(edges), "counts": json.dumps(counts),
        }  # fmt: skip
        self._to.record(HISTOGRAM, record, monotonic_of(walltime))

    @_guarded
    def add_image(
        self, tag: str, img_tensor: Any, global_step: int | None = None,
        walltime: float | None = None, dataformats: str = "CHW",
    ) -> None:  # fmt: skip
        self._image(tag, img_tensor, global_step, walltime, dataformats)

    @_guarded
    def add_images(
        self, tag: str, img_tensor: Any, global_step: int | None = None,
        walltime: float | None = None, dataformats: str = "NCHW",
    ) -> None:  # fmt: skip
        """As one image: a grid of up to 8 columns."""
        self._image(tag, img_tensor, global_step, walltime, dataformats)

    @_guarded
    def add_image_with_boxes(
        self, tag: str, img_tensor: Any, box_tensor: Any, global_step: int | None = None,
        walltime: float | None = None, rescale: float = 1, dataformats: str = "CHW",
        labels: Any = None,
    ) -> None:  # fmt: skip
        """The image with the outlines of its boxes, in its own size; labels are logged as text."""
        drawn = media.with_boxes(as_array(img_tensor), dataformats, as_array(box_tensor))
        self._image(tag, drawn, global_step, walltime, "HWC")
        if labels is not None:
            text = ", ".join(map(str, [labels] if isinstance(labels, str) else labels))
            self._to.text(f"{tag}/labels", text, global_step, monotonic_of(walltime))

    @_guarded
    def add_figure(
        self, tag: str, figure: Any, global_step: int | None = None, close: bool = True,
        walltime: float | None = None,
    ) -> None:  # fmt: skip
        """A figure of matplotlib, or a list of them."""
        for index, one in enumerate(figure if isinstance(figure, list) else [figure]):
            file = io.BytesIO()
            one.savefig(file, format="png", dpi=one.dpi)
            made = image_job(tag, file.getvalue(), global_step, self._to.source, index=index)
            self._to.submit(made, monotonic_of(walltime))
            if close:
                media.close_figure(one)

    @_guarded
    def add_video(
        self, tag: str, vid_tensor: Any, global_step: int | None = None, fps: float = 4,
        walltime: float | None = None,
    ) -> None:  # fmt: skip
        """Dimensions NTCHW; an animated GIF for each of the N. Needs pillow."""
        videos = as_array(vid_tensor)
        if videos.ndim != 5:
            raise ValueError(f"a video has the dimensions NTCHW, not the shape {videos.shape}")
        if not media.has_pillow():
            self._to.warn(notice("summary-no-pillow"))
            return
        for index, frames in enumerate(videos):
            data = media.gif(frames, fps)
            made = image_job(tag, data, global_step, self._to.source, index=index)
            self._to.submit(made, monotonic_of(walltime))

    @_guarded
    def add_audio(
        self, tag: str, snd_tensor: Any, global_step: int | None = None, sample_rate: int = 44100,
        walltime: float | None = None,
    ) -> None:  # fmt: skip
        """Numbers from -1 to 1, as the bytes of a WAV file."""
        data = media.wav(as_array(snd_tensor), sample_rate)
        self._tensor(tag, media.as_bytes_array(data), global_step, walltime, "audio")

    @_guarded
    def add_text(
        self, tag: str, text_string: str, global_step: int | None = None,
        walltime: float | None = None,
    ) -> None:  # fmt: skip
        self._to.text(tag, str(text_string), global_step, monotonic_of(walltime))

    @_guarded
    def add_graph(
        self, model: Any, input_to_model: Any = None, verbose: bool = False,
        use_strict_trace: bool = True,
    ) -> None:  # fmt: skip
        """Accepted; a row of `problems` says that the graph is missing."""
        self._to.problem(notice("summary-not-yet", what="SummaryWriter.add_graph"))

    @_guarded
    def add_onnx_graph(self, prototxt: Any) -> None:
        self._to.problem(notice("summary-not-yet", what="SummaryWriter.add_onnx_graph"))

    @_guarded
    def add_embedding(
        self, mat: Any, metadata: Any = None, label_img: Any = None,
        global_step: int | None = None, tag: str = "default", metadata_header: Any = None,
    ) -> None:  # fmt: skip
        """The points as a tensor; what is known of each as text, and its image."""
        self._tensor(tag, mat, global_step, None, "projector")
        if metadata is not None:
            known = {"header": metadata_header, "metadata": list(metadata)}
            self._to.text(f"{tag}/metadata", json.dumps(known, default=str), global_step)
        if label_img is not None:
            self._image(f"{tag}/label_img", label_img, global_step, None, "NCHW")

    @_guarded
    def add_pr_curve(
        self, tag: str, labels: Any, predictions: Any, global_step: int | None = None,
        num_thresholds: int = 127, weights: Any = None, walltime: float | None = None,
    ) -> None:  # fmt: skip
        """Rows of true and false positives, true and false negatives, precision and recall."""
        weights = None if weights is None else as_array(weights)
        curve = media.precision_and_recall(
            as_array(labels), as_array(predictions), min(num_thresholds, _MOST_THRESHOLDS), weights
        )
        self._tensor(tag, curve, global_step, walltime, "pr_curves")

    @_guarded
    def add_pr_curve_raw(
        self, tag: str, true_positive_counts: Any, false_positive_counts: Any,
        true_negative_counts: Any, false_negative_counts: Any, precision: Any, recall: Any,
        global_step: int | None = None, num_thresholds: int = 127, weights: Any = None,
        walltime: float | None = None,
    ) -> None:  # fmt: skip
        rows = (true_positive_counts, false_positive_counts, true_negative_counts,
                false_negative_counts, precision, recall)  # fmt: skip
        curve = media.stacked([as_array(row) for row in rows])
        self._tensor(tag, curve, global_step, walltime, "pr_curves")

    @_guarded
    def add_custom_scalars(self, layout: Any) -> None:
        """The layout as text; the pages choose charts on their own."""
        self._to.text("custom_scalars__config__", json.dumps(layout, default=str), None)

    @_guarded
    def add_custom_scalars_multilinechart(
        self, tags: Any, category: str = "default", title: str = "untitled"
    ) -> None:
        layout = {category: {title: ["Multiline", list(tags)]}}
        self._to.text("custom_scalars__config__", json.dumps(layout), None)

    @_guarded
    def add_custom_scalars_marginchart(
        self, tags: Any, category: str = "default", title: str = "untitled"
    ) -> None:
        layout = {category: {title: ["Margin", list(tags)]}}
        self._to.text("custom_scalars__config__", json.dumps(layout), None)

    @_guarded
    def add_mesh(
        self, tag: str, vertices: Any, colors: Any = None, faces: Any = None,
        config_dict: Any = None, global_step: int | None = None, walltime: float | None = None,
    ) -> None:  # fmt: skip
        parts = {"VERTEX": vertices, "FACE": faces, "COLOR": colors}
        for name, part in parts.items():
            if part is not None:
                self._tensor(f"{tag}_{name}", part, global_step, walltime, "mesh")
        if config_dict is not None:
            text = json.dumps(config_dict, default=str)
            self._to.text(f"{tag}/config", text, global_step, monotonic_of(walltime))

    @_guarded
    def add_hparams(
        self, hparam_dict: Mapping[str, Any], metric_dict: Mapping[str, Any],
        hparam_domain_discrete: Any = None, run_name: str | None = None,
        global_step: int | None = None,
    ) -> None:  # fmt: skip
        self._to.hyperparameters(hparam_dict)
        self._to.scalars(metric_dict, global_step)
        self._to.lineage("evaluation", metric_dict, global_step)

    def flush(self) -> None:
        self._to.flush()

    def close(self) -> None:
        """Write what waits. A run of its own has ended then."""
        self._to.close()

    def __enter__(self) -> "SummaryWriter":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _tensor(
        self, tag: str, tensor: Any, step: Any, walltime: float | None, plugin: str | None = None
    ) -> None:
        made = tensor_job(tag, tensor, step, self._to.source, plugin)
        self._to.submit(made, monotonic_of(walltime))

    def _image(self, tag: str, image: Any, step: Any, walltime: float | None, order: str) -> None:
        made = image_job(tag, image, step, self._to.source, order)
        self._to.submit(made, monotonic_of(walltime))
