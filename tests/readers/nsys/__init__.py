"""Tests of pyprof.readers.nsys."""
