"""MindSpore's profiler, on any device and of any age."""
