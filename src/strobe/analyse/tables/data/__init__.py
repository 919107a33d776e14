"""Tables about the input pipeline."""
