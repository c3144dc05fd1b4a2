"""How calls of torch's ops are wrapped, and what their markers record."""
