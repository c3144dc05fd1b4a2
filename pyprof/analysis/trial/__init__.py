"""What the runs of a trial show about each change: time, memory, losses, kernels."""
