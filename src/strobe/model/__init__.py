"""What all rooms agree on: tables, journal, manifest and options. Standard library only."""
