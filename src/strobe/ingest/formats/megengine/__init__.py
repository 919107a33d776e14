"""MegEngine's timeline and its static profile."""
