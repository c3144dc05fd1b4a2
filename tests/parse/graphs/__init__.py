"""Tests of what ties replays of graphs to their capture."""
