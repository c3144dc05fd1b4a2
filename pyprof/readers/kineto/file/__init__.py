"""From the bytes of a trace file to its events."""
