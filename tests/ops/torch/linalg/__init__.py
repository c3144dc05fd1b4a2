"""Tests of pyprof.ops.torch.linalg."""
