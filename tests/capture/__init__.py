"""Tests of pyprof.capture."""
