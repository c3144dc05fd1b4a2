"""Mixtures of experts: routing, products, whole layers."""
