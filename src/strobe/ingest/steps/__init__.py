"""What is a training step, and which parts does it have? Decided from marks."""
