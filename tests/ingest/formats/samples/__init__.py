"""Small recordings of every format, made with the tools that write it; README.md says how."""
