"""Tests of pyprof.analysis.whatif."""
