"""Tests of pyprof.ops."""
