"""Sampled metrics, joined to the activities that ran meanwhile."""
