"""`python -m pyprof.prof` is `pyprof prof`."""

from pyprof.prof.command import prof

prof(prog_name="python -m pyprof.prof")
