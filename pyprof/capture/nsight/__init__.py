"""A script captured by Nsight Systems."""
