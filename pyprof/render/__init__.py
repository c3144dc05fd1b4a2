"""Numbers as text, pages and pictures."""
