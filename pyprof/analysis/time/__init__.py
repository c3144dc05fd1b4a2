"""When a device worked and when it idled: timeline, steps, causes of idle time."""
