"""`python -m pyprof.report` is `pyprof report`."""

from pyprof.report.report import command

if __name__ == "__main__":
    command(prog_name="python -m pyprof.report")
