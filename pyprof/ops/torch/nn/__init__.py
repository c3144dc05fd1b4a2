"""Layers of neural networks: convolutions, norms, attention, losses."""
