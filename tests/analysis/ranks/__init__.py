"""Tests of pyprof.analysis.ranks."""
