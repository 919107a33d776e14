"""How recording starts: under `strobe run`, by environment variables, by YAML."""
