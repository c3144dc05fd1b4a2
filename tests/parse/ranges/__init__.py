"""Tests of pyprof.parse.ranges."""
