"""Tests of `pyprof.ops.libraries.attention`."""
