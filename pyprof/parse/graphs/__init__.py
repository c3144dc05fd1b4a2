"""Ties the kernels of graph replays to where they were captured, if the tool records no nodes.

`choice` finds the capture of each replay, `matching` the launch of each kernel in it, or the same
kernels run eagerly, outside graphs. What they find is marked as inferred.
"""
