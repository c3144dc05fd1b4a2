"""Tests of pyprof.trial.script."""
