"""Tests of pyprof.render.page.parts.totals."""
