"""Tests of pyprof.analysis.report."""
