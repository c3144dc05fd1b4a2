"""Tests of pyprof.allocations."""
