"""Tests of pyprof.instrument.ranges."""
