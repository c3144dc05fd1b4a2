"""A user's script run under a profiler: Nsight Systems, or torch.profiler in the same process."""
