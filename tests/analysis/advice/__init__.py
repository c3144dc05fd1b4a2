"""Tests of pyprof.analysis.advice."""
