"""Tables about steps, threads and communication."""
