"""Why batches are late: what the rule data-starvation concludes from loaders and queues."""
