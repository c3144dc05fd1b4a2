"""From what a user names to captures: which files, whose ranks, and executors that work on many.

`source` is the door: `load` reads one, `map_reduce` summarises one or many.
"""
