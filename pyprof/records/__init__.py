"""Records: one row per activity, and the files that hold them."""
