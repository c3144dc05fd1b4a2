"""Tests of pyprof.render.page.parts.changes."""
