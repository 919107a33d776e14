"""Tables and findings as text, pages and files."""
