"""The columns of a report, and how their values are made."""
