"""Record JAX: calls of compiled functions, steps, and XLA's profiler."""
