"""Tests of pyprof.ops.torch.tensors."""
