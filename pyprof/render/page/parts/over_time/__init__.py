"""What ran when, what filled the memory meanwhile, and how long steps took."""
