"""Tests of pyprof.analysis.memory."""
