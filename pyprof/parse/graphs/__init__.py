"""What graphs replay is tied to where it was captured, where the tool does not tell the nodes.

`captures` finds the capture of each replay, `matching` the launch of each kernel in it, `twins` the
like of a replay that ran outside of graphs. What they find is inferred, and said to be.
"""
