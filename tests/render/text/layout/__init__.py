"""Tests of pyprof.render.text.layout."""
