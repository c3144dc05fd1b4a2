"""What the shell starts as `pyprof`. Little is loaded before Ctrl-C is seen to."""

from pyprof.process import program_end, signals


def main() -> None:
    """Run the command line of this process."""
    signals.quietly_until_begun()
    from pyprof.__main__ import main as group  # noqa: PLC0415 - takes time to load

    program_end.run(group)
