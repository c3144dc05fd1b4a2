"""Tests of pyprof.parse.graphs."""
