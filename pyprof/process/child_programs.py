"""Other programs started here do not outlive the process that started them."""

from __future__ import annotations

import os
import signal
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

_SET_SIGNAL_OF_PARENTS_DEATH = 1
"""Linux's PR_SET_PDEATHSIG."""


def bind(command: Sequence[str], *, hangup: bool = True) -> list[str]:
    """Return a command line by which the program gets SIGTERM when this process ends.

    Only Linux can do that; elsewhere the line is unchanged. Without `hangup` the program survives
    the closing of the terminal.
    """
    if sys.platform != "linux" or not sys.executable:
        return [*command]
    how = "hangup" if hangup else "nohup"
    return [sys.executable, "-I", "-S", __file__, str(os.getpid()), how, *command]


def _become(parent: str, how: str, *command: str) -> None:
    """Turn this process, the child, into the program."""
    import ctypes  # noqa: PLC0415 - only in the child

    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # as subprocess does, and Python undid
    if how == "nohup":
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
    ctypes.CDLL(None).prctl(_SET_SIGNAL_OF_PARENTS_DEATH, signal.SIGTERM)
    if os.getppid() != int(parent):  # already gone
        sys.exit(128 + signal.SIGTERM)
    try:
        os.execvp(command[0], command)  # noqa: S606 - no shell is the point
    except OSError as error:
        sys.exit(f"{command[0]}: {error.strerror}")


if __name__ == "__main__":
    _become(*sys.argv[1:])
