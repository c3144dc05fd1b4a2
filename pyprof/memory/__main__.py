"""`python -m pyprof.memory` is `pyprof memory`."""

if __name__ == "__main__":
    from pyprof.process import signals

    signals.quietly_until_begun()

    from pyprof.commands.memory import command

    command(prog_name="python -m pyprof.memory")
