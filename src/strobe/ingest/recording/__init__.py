"""Read what our own recorder left: journals, windows, samples."""
