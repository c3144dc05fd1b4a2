"""Tests of pyprof.ops.torch.nn."""
