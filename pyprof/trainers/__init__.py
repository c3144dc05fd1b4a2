"""Callbacks for training loops that users do not write: Lightning's and Hugging Face's.

Each marks steps, and a few steps of the training as the range to capture. Like everything in the
user's script, they change nothing, and cost nothing without a profiler.
"""
