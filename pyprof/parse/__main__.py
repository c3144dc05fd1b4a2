"""`python -m pyprof.parse` is `pyprof parse`."""

if __name__ == "__main__":
    from pyprof import signals

    signals.quietly_until_begun()

    from pyprof.parse.command import parse

    parse(prog_name="python -m pyprof.parse")
