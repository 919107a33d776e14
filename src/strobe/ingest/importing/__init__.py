"""Find traces written elsewhere and turn them into a run."""
