"""The web pages: look up a name, run a pure function in a worker process, send a table."""
