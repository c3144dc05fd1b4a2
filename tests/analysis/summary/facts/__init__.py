"""Tests of pyprof.analysis.summary."""
