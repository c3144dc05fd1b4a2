"""Capture by torch.profiler (Kineto) in the script's own process."""
