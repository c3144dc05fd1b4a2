"""Tests of pyprof.analysis.summary.facts."""
