"""`python -m pyprof.capture SCRIPT.py`."""

if __name__ == "__main__":
    from pyprof.process import signals

    signals.quietly_until_begun()

    from pyprof.commands.capture import command

    command()
