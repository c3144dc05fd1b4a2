"""Tests of pyprof.prof.calls."""
