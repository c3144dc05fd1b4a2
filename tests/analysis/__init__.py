"""Tests of pyprof.analysis."""
