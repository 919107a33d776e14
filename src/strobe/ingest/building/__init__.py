"""From a trace to the tables of a rank."""
