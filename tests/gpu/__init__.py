"""Tests of pyprof.gpu."""
