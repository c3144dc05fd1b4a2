"""Tests of pyprof.render.page.parts.costs."""
