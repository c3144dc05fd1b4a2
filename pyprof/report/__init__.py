"""Outputs beyond rows: one file each."""
