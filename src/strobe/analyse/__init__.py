"""Pure functions from a run to a table, and what they share."""
