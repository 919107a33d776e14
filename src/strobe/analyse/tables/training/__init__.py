"""Tables about what a training logged."""
