"""Tests of pyprof.capture.nsight."""
