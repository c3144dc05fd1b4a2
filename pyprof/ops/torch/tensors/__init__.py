"""Pointwise ops, reductions, and ops that create, move or view elements."""
