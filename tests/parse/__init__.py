"""Tests of pyprof.parse."""
