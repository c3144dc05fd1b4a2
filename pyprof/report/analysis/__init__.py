"""Numbers about a capture that several outputs show."""
