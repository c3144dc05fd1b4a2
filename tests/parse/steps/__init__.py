"""Tests of pyprof.parse.steps."""
