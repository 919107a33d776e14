"""trackio: an SQLite database for each project."""
