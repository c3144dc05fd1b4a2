"""Entry point of the `pyprof` script; imports little before Ctrl-C is handled."""

from pyprof.process import program_end, signals


def main() -> None:
    """Run the command line of this process."""
    signals.quietly_until_begun()
    from pyprof.__main__ import main as group  # noqa: PLC0415 - takes time to load

    program_end.run(group)
