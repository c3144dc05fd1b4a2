"""Tests of pyprof.trial."""
