"""Ranges on each thread: opened, timed, and sent to the profiler."""
