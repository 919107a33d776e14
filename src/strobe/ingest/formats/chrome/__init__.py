"""Any Chrome trace, and the timeline that Strobe itself exports."""
