"""One module a command: its name is the verb, `command` what `pyprof VERB` runs."""
