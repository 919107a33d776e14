"""`SummaryWriter` of torch.utils.tensorboard and of tensorboardX.

Numbers are taken as the script gives them, in double precision; everything else as the writer has
packed it for its file.
"""

import sys
from collections.abc import Mapping
from typing import Any

from strobe.collect.loggers.calls import Values, is_number, named, time_of, wrap
from strobe.collect.loggers.names import Prefixes
from strobe.collect.loggers.summaries import bytes_job, take_summary
from strobe.collect.metrics.arrays import tensor_job

_SOURCES = {"torch": "tensorboard", "tensorboardX": "tensorboardX"}


def install(package: str) -> None:
    module = sys.modules[package]
    source = _SOURCES[package.partition(".")[0]]
    writer, files, take = module.SummaryWriter, module.FileWriter, _Writers(source)
    wrap(writer, "add_scalar", source, take.scalar)
    wrap(writer, "add_scalars", source, take.scalars)
    wrap(writer, "add_hparams", source, named(writer, "add_hparams", take.hparams))
    wrap(writer, "add_embedding", source, named(writer, "add_embedding", take.embedding))
    wrap(files, "add_summary", source, take.summary)
    wrap(files, "add_graph", source, take.graph)


class _Writers:
    """All writers of a package; each folder that they write to is a run of TensorBoard."""

    def __init__(self, source: str) -> None:
        self._is_nested = source == "tensorboardX"  # folders of `add_scalars`
        self._prefixes = Prefixes()

    def _prefix(self, writer: Any) -> str:
        folder = getattr(writer, "log_dir", None) or getattr(writer, "logdir", "")
        return self._prefixes.of_folder(str(folder))

    def scalar(
        self, values: Values, writer: Any, tag: str, scalar_value: Any, global_step: Any = None,
        walltime: Any = None, *_: Any, **__: Any,
    ) -> None:  # fmt: skip
        if is_number(scalar_value):  # the text of a number is one to the writer
            tag = self._prefix(writer) + str(tag)
            values.scalars({tag: scalar_value}, global_step, time_of(values, walltime))

    def scalars(
        self, values: Values, writer: Any, main_tag: str, tag_scalar_dict: Mapping[str, Any],
        global_step: Any = None, walltime: Any = None, *_: Any,
    ) -> None:  # fmt: skip
        """Each of them is a run of its own for the writer, named after both tags."""
        before = f"{main_tag}/" if self._is_nested else f"{main_tag.replace('/', '_')}_"
        before = self._prefix(writer) + before
        numbers = {
            f"{before}{tag}/{main_tag}": value
            for tag, value in tag_scalar_dict.items() if is_number(value)
        }  # fmt: skip
        values.scalars(numbers, global_step, time_of(values, walltime))

    def hparams(self, values: Values, given: dict[str, Any]) -> None:
        values.hyperparameters(given["hparam_dict"] or {})
        prefix = self._prefix(given["self"])
        results = {
            prefix + str(tag): value for tag, value in (given["metric_dict"] or {}).items()
            if is_number(value)
        }  # fmt: skip
        if results:
            values.scalars(results, given.get("global_step"))

    def embedding(self, values: Values, given: dict[str, Any]) -> None:
        tag = self._prefix(given["self"]) + str(given["tag"])
        values.submit(
            *tensor_job(tag, given["mat"], given["global_step"], values.source, "projector")
        )

    def summary(
        self, values: Values, file: Any, summary: Any, global_step: Any = None,
        walltime: Any = None,
    ) -> None:  # fmt: skip
        prefix = self._prefixes.of_folder(str(file.get_logdir()))
        take_summary(values, summary, prefix, global_step, time_of(values, walltime))

    def graph(self, values: Values, file: Any, graph_profile: Any, walltime: Any = None) -> None:
        tag = self._prefixes.of_folder(str(file.get_logdir())) + "graph_def"
        data = graph_profile[0].SerializeToString()
        values.submit(*bytes_job(values, tag, data, "graph_def", None, time_of(values, walltime)))
