"""Tests of pyprof.gpu.peaks."""
