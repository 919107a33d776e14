"""Writes event files: records with checksums around protobuf messages, from a run's metrics."""
