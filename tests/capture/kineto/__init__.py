"""Tests of pyprof.capture.kineto."""
