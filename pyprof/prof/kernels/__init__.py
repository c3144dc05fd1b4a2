"""What is known of each kernel: its family, occupancy and hardware counters."""
