"""Tests of pyprof.trial.changes."""
