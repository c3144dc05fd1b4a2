"""Tests of pyprof.readers.sqlite."""
