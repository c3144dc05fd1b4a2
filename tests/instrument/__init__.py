"""Tests of pyprof.instrument."""
