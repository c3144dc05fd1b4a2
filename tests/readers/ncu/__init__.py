"""Tests of pyprof.readers.ncu."""
