"""Tests of pyprof.readers.rocpd."""
