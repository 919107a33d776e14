"""What rules measure in common: operator costs, device models, stack lines."""
