"""`python -m pyprof.export` is `pyprof export`."""

if __name__ == "__main__":
    from pyprof.process import signals

    signals.quietly_until_begun()

    from pyprof.commands.export import command

    command(prog_name="python -m pyprof.export")
