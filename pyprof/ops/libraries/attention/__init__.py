"""Attention of serving and training libraries, and the caches that it reads."""
