"""`python -m pyprof.report` is `pyprof report`."""

from pyprof.commands.report import command

if __name__ == "__main__":
    command(prog_name="python -m pyprof.report")
