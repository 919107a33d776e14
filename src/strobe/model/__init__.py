"""The contract between the rooms: tables, journal, manifest, options. Standard library only."""
