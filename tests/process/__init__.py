"""Tests of pyprof.process."""
