"""Columns in JSON have their units in their names."""

from pyprof.prof.columns import json_columns
from pyprof.prof.columns.standard import COLUMNS, NUMBERS


def test_units_are_in_keys() -> None:
    """For every column and every measure of groups; no key occurs twice."""
    keys = json_columns.by_key()
    assert {"sil_ns", "gap_ns", "eff_percent", "smem_bytes", "flops", "bytes", "tflops", "gbs",
            "total_ns", "share_percent", "tflops_max"} <= {*keys}  # fmt: skip
    assert {*COLUMNS} <= {column.name for column in keys.values()}
    lists = [key for key, column in keys.items() if column.kind == NUMBERS]
    assert {"grid", "block", "seq"} <= {*lists}
