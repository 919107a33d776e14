"""Tables about memory."""
