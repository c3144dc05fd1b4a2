"""Capture by torch.profiler (Kineto) in the script's own process."""

SUFFIX = ".pt.trace.json.gz"
