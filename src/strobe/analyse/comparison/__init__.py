"""Compare two runs: their steps, operators and settings."""
