"""MindSpore's summary API on the metric log: SummaryCollector, SummaryRecord, SummaryWriter."""
