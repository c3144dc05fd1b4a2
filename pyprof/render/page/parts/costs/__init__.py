"""What was achieved and what was possible, what counters measured, and what is unknown."""
