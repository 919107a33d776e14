"""Training metrics of this process: what it logs itself, and what other loggers are given."""
