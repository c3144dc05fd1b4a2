"""Tests of `pyprof.ops.libraries`."""
