"""Tests of `pyprof.sets`."""
