"""Watch for steps that become slower, and request a window when they do."""
