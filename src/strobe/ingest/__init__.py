"""Many formats in, one trace out: the last place that knows a framework's name."""

from strobe.ingest.opening import open_run_dir

__all__ = ["open_run_dir"]
