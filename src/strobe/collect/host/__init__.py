"""What the host does: CPU, memory, stacks, garbage collection."""
