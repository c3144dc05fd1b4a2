"""Tests of pyprof.parse.counters."""
