"""Ranges around a script's torch ops, layers and optimizer steps, and ranges that users name.

Runs inside the user's script and must not change what it does. Needs torch; knows nothing of
captures.
"""

from pyprof.instrument.lifecycle import (
    enabled,
    find_modules,
    for_profilers,
    init,
    listening,
    marked,
    stop,
    wrap,
)
from pyprof.instrument.ranges.annotate import annotate
from pyprof.instrument.ranges.capture_range import range_start, range_stop, step, step_end
from pyprof.instrument.ranges.timers import print_timings, timings

__all__ = [
    "annotate",
    "enabled",
    "find_modules",
    "for_profilers",
    "init",
    "listening",
    "marked",
    "print_timings",
    "range_start",
    "range_stop",
    "step",
    "step_end",
    "stop",
    "timings",
    "wrap",
]
