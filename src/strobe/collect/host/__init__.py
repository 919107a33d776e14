"""What the host does meanwhile: CPU, memory, stacks, garbage collection."""
