"""What limits an op, and its colour in every chart."""

from __future__ import annotations

UNKNOWN = "unknown"

BOUNDS = {"compute": "#3b82c4", "memory": "#d9822b", "latency": "#9a9a9a", UNKNOWN: "#4c9f70"}
