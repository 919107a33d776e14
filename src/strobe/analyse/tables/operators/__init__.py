"""Tables about operators and modules."""
