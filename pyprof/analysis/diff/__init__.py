"""Two captures compared: how rows are matched, what changed, and how sure that is."""
