"""Op calls: which one each kernel works for, and its operands."""
