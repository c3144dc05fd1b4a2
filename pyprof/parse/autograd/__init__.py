"""Which forward op backward work belongs to."""
