"""Tests of pyprof.analysis.time."""
