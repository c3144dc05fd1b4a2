"""`python -m pyprof.parse` is `pyprof parse`."""

from pyprof.parse.command import parse

parse(prog_name="python -m pyprof.parse")
