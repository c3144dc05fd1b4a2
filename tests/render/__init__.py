"""Tests of pyprof.render."""
