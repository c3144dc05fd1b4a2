"""`python -m pyprof.prof` is `pyprof prof`."""

if __name__ == "__main__":
    from pyprof import signals

    signals.quietly_until_begun()

    from pyprof.prof.command import prof

    prof(prog_name="python -m pyprof.prof")
