"""Memory as PyTorch records it: snapshots and timelines."""
