"""Tests of pyprof.readers.kineto.file."""
