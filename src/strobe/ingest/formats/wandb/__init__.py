"""W&B: the files that a run writes while it is offline."""
