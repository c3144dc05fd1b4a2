"""Tests of pyprof.analysis.trial."""
