"""A script captured by torch.profiler (Kineto) in its own process."""
