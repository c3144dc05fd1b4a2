"""The nested ranges of a capture: ops, layers and user ranges around each launch."""
