"""Ranges around what a script asks of torch: ops, layers, optimizer steps, what the user names.

Runs inside the user's script, which must not notice. Needs torch; knows nothing of captures.
"""

from pyprof.instrument.lifecycle import (
    begin,
    enabled,
    for_profilers,
    init,
    listening,
    marked,
    stop,
    wrap,
)
from pyprof.instrument.ranges.annotate import annotate
from pyprof.instrument.ranges.capture_range import profile, range_hooks, step
from pyprof.instrument.ranges.timers import print_timings, timings

__all__ = [
    "annotate",
    "begin",
    "enabled",
    "for_profilers",
    "init",
    "listening",
    "marked",
    "print_timings",
    "profile",
    "range_hooks",
    "step",
    "stop",
    "timings",
    "wrap",
]
