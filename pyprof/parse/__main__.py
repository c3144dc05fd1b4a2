"""`python -m pyprof.parse` is `pyprof parse`."""

if __name__ == "__main__":
    from pyprof.process import program_end, signals

    signals.quietly_until_begun()

    from pyprof.commands.parse import command

    program_end.run(lambda: command(prog_name="python -m pyprof.parse"))
