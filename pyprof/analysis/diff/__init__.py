"""Two captures side by side: what is compared, how it is matched, and how it is shown."""
