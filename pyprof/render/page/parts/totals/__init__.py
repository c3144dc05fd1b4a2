"""Where the time goes: in all, and by family, line, module, op, kernel and op of the host."""
