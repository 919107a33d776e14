"""Formats that other tools write, a folder each, and what their readers share."""
