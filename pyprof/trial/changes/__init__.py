"""The changes that `pyprof try` can apply; each module here is found automatically."""
