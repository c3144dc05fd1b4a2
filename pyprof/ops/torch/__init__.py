"""Costs of PyTorch's own ops."""
