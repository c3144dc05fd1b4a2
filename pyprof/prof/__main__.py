"""`python -m pyprof.prof` is `pyprof prof`."""

if __name__ == "__main__":
    from pyprof.process import signals

    signals.quietly_until_begun()

    from pyprof.commands.prof import command

    command(prog_name="python -m pyprof.prof")
