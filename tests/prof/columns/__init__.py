"""Tests of pyprof.prof.columns."""
