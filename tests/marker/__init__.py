"""Tests of pyprof.marker."""
