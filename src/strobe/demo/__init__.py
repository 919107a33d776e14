"""A small training that has a fault, for `strobe demo`. It knows nothing of Strobe."""
