"""The steps of a loop, and the windows in which a profiler recorded."""
