"""Tests of pyprof.parse.autograd."""
