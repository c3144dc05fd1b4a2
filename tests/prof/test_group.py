"""Sums of rows by texts."""

import numpy as np
import pyarrow as pa

from pyprof.prof.group import add_up_rows


def test_chosen_rows_alone_are_added_up_by_their_texts() -> None:
    keys = {"op": pa.array(["relu", "mm", None, "mm"]).dictionary_encode()}
    numbers = [("ns", np.array([1, 2**61, 4, 8])), ("flops", np.array([0.5, 2.0, 4.0, 8.0]))]
    sums = add_up_rows(keys, numbers, np.array([True, True, False, True]))
    assert sums.to_pylist() == [
        {"op": "relu", "ns": 1, "flops": 0.5},
        {"op": "mm", "ns": 2**61 + 8, "flops": 10.0},
    ]
