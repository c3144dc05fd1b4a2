"""Facts about GPUs and their kernels' names: tables with sources, independent of any file."""
