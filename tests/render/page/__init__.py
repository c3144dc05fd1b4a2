"""Tests of pyprof.render.page."""
