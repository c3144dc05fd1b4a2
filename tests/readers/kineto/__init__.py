"""Tests of pyprof.readers.kineto."""
