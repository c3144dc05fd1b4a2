"""Captures written as Python literals; import them from `tests.capture_filesers`."""
