"""Sets of captures: which files, whose ranks, and an engine that works on many of them.

Knows captures as files, never what is in their rows.
"""
