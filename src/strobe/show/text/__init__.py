"""Text for people: tables, findings, the summary."""
