"""The totals of one capture: by op, layer, line, phase and host op; its utilization."""
