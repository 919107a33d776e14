"""Many formats in, one trace out: the last place that knows a framework's name."""
