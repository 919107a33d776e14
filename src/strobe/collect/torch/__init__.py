"""Record PyTorch: hooks, data loaders, communication, and torch.profiler."""
