"""What a Table shows: totals, steps, idle time, memory, ranks, differences, advice."""
