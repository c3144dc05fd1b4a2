"""Tests of pyprof.ops.torch."""
