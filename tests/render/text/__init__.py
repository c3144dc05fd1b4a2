"""Tests of pyprof.render.text."""
