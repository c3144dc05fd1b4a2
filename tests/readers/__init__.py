"""Tests of pyprof.readers."""
