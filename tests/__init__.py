"""Tests of pyprof."""
