"""Captures as Python literals; import them from `tests.builders`."""
