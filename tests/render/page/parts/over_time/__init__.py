"""Tests of pyprof.render.page.parts.over_time."""
