"""CUDA graphs in traces: their nodes, and the recordings of their capture."""
