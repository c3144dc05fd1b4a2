"""Capture by Nsight Systems."""
