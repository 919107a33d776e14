"""The trace of one rank in memory or spooled: what every source fills alike."""
