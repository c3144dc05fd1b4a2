"""Tests of pyprof.prof."""
