"""One module per command: its name is the verb, and `command` is what `pyprof VERB` runs."""
