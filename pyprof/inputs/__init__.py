"""From what a user names to captures: which files, which ranks, and executors for many.

`source` is the entry point: `load` reads one, `map_reduce` summarises one or many.
"""
