"""What the runs of a trial say about each change: time, memory, losses, kernels."""
