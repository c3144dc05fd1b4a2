"""Tests of `pyprof.inputs`."""
