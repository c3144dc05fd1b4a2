"""Wrappers around torch's ops, and the markers that describe each call."""
