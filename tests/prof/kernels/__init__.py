"""Tests of pyprof.prof.kernels."""
