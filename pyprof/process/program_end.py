"""How a process of our own ends: as soon as Python's own clean-up is done.

After it, the C library would run the clean-up of every loaded library, while Arrow's threads may
still release memory that belongs to Python. One of them then found no Python, and the C++ runtime
ended the process (SIGABRT, "terminate called without an active exception") after all output was
written. Nothing of ours is left to do by then.
"""

from __future__ import annotations

import atexit
import os
import sys
import threading
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType

_RUNS_SCRIPTS = "pyprof.capture.script"
"""If this module is loaded, so may be libraries of the user's script: the process ends as usual."""


def run(main: Callable[[], object]) -> None:
    """Run the program; end the process with its exit code, if only Python itself called it."""
    caller = sys._getframe(1)  # noqa: SLF001 - documented
    try:
        main()
    except SystemExit as end:
        if isinstance(end.code, (int, type(None))) and _is_program(caller):
            # all that Python does before it frees its modules
            threading._shutdown()  # type: ignore[attr-defined]  # noqa: SLF001 - waits for threads
            atexit._run_exitfuncs()  # noqa: SLF001 - what others registered
            with suppress(OSError, ValueError):  # Python reports it, as usual
                for stream in filter(None, (sys.stdout, sys.stderr)):
                    stream.flush()
                os._exit(end.code or 0)
        raise


def _is_program(frame: FrameType) -> bool:
    """Whether Python itself runs the frame: no profiler, debugger or measurement of coverage."""
    if _RUNS_SCRIPTS in sys.modules or sys.gettrace() or sys.getprofile():
        return False
    callers = []
    caller: FrameType | None = frame
    while caller is not None:
        callers.append(caller.f_globals.get("__name__"))
        caller = caller.f_back
    while callers and callers[-1] == "runpy":
        callers.pop()
    return callers.count("__main__") == 1 and callers[-1] == "__main__"
