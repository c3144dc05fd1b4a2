"""Ranges around what a script asks of torch: ops, layers, optimizer steps, what the user names.

Runs inside the user's script, which must not notice. Needs torch; knows nothing of captures.
"""

from pyprof.instrument.annotate import annotate
from pyprof.instrument.hooks import range_hooks
from pyprof.instrument.lifecycle import (
    begin,
    enabled,
    for_profilers,
    init,
    listening,
    stop,
    wrap,
)
from pyprof.instrument.profile import profile, step
from pyprof.instrument.timers import print_timings, timings

__all__ = [
    "annotate",
    "begin",
    "enabled",
    "for_profilers",
    "init",
    "listening",
    "print_timings",
    "profile",
    "range_hooks",
    "step",
    "stop",
    "timings",
    "wrap",
]
