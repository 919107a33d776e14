"""Benchmarks of training metrics: reading and writing event files."""
