"""Tests of pyprof.cli."""
