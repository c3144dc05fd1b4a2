"""`python -m pyprof.prof` is `pyprof prof`."""

if __name__ == "__main__":
    from pyprof.process import program_end, signals

    signals.quietly_until_begun()

    from pyprof.commands.prof import command

    program_end.run(lambda: command(prog_name="python -m pyprof.prof"))
