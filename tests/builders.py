"""Captures as Python literals: activity in, a tool's file out.

A test says what the GPU did (`Work`) and what ranges there were (`Range`); a layout says how one
version of a tool spells that. Every file also holds what must never be copied out: `SECRETS`.
"""

from tests.capture_files.model import CAPTURES, SECRETS, Node, Range, Work, table, write_tables
from tests.capture_files.nsys import LAYOUTS, Layout, nsys_db
from tests.capture_files.nvprof import nvprof_db
from tests.capture_files.rocpd import rocpd_db

__all__ = [
    "CAPTURES",
    "LAYOUTS",
    "SECRETS",
    "Layout",
    "Node",
    "Range",
    "Work",
    "nsys_db",
    "nvprof_db",
    "rocpd_db",
    "table",
    "write_tables",
]
