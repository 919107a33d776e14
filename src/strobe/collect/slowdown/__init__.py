"""Watch for steps that become slower, and ask for a window when they do."""
