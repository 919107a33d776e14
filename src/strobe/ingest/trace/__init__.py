"""The trace of one rank, in memory or spooled: the common form that every reader fills."""
