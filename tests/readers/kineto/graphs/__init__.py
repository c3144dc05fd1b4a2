"""Tests of pyprof.readers.kineto.graphs."""
