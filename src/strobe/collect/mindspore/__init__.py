"""Record MindSpore: hooks, data pipelines and its profiler."""
