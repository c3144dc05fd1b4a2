"""Tests of pyprof.instrument.ops."""
