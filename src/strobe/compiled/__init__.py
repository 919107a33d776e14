"""Profile a compiled function without a training."""
