"""Tests of pyprof.records."""
