"""What filled the memory of a device: allocations, from files of several tools.

`snapshot`, `trace_events`, `nsys_events` and `rocpd_events` turn a file into `history.History`, one
per device; the other modules analyse that.
"""
