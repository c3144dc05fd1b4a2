"""Tests of pyprof.capture.rocm."""
