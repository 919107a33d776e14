"""Read what our own recorder wrote: journals, windows, samples."""
