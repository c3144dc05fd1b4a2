"""Tests of pyprof.capture.under_profiler."""
