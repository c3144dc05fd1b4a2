"""Tests of pyprof.analysis.diff."""
