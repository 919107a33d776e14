"""SummaryMonitor: the callback of mindformers, a SummaryCollector with a default folder."""

from typing import Any

from strobe.callbacks.summary.collector import SummaryCollector
from strobe.collect import ranks

_FOLDER = "./output/summary/rank_{rank}"


class SummaryMonitor:
    """Creates a SummaryCollector."""

    def __new__(  # type: ignore[misc]
        cls, summary_dir: Any = None, collect_freq: int = 10,
        collect_specified_data: dict[str, Any] | None = None, keep_default_action: bool = True,
        custom_lineage_data: dict[str, Any] | None = None, collect_tensor_freq: int | None = None,
        max_file_size: int | None = None, export_options: dict[str, Any] | None = None,
    ) -> SummaryCollector:  # fmt: skip
        if summary_dir is None:
            summary_dir = _FOLDER.format(rank=ranks.of_this_process().rank or 0)
        return SummaryCollector(
            summary_dir, collect_freq=collect_freq, collect_specified_data=collect_specified_data,
            keep_default_action=keep_default_action, custom_lineage_data=custom_lineage_data,
            collect_tensor_freq=collect_tensor_freq, max_file_size=max_file_size,
            export_options=export_options,
        )  # fmt: skip
