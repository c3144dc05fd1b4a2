"""`python -m pyprof.parse` is `pyprof parse`."""

if __name__ == "__main__":
    from pyprof.process import signals

    signals.quietly_until_begun()

    from pyprof.commands.parse import command

    command(prog_name="python -m pyprof.parse")
