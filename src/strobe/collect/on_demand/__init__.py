"""Windows requested while training runs, agreed on by all ranks."""
