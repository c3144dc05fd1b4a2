"""Tests of `pyprof.ops.libraries.experts`."""
