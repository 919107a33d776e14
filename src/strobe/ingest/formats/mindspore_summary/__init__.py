"""Summaries of MindSpore: what SummaryCollector and SummaryRecord write."""
