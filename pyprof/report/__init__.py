"""Outputs beyond rows: one file each, whose `command` is `pyprof NAME`; found by being here."""
