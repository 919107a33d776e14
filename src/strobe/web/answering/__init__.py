"""From a question to its answer: cached, shared, or worked out by a worker process."""
