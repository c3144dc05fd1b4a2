"""Callbacks for training loops that the user does not write: Lightning's, Hugging Face's.

Each marks steps, and as the range to capture a few steps of the training alone. Like everything
that runs in the user's script, they change nothing and cost nothing where no profiler is.
"""
