"""Rows by ids, whatever the ids; tables by name, whatever the schema."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from pyprof.arrays import MISSING
from pyprof.readers.rocpd.recording import Rows, suffixes

IDS = st.integers(-(2**63), 2**63 - 1)


@given(st.lists(st.one_of(st.integers(-1, 9), IDS)), st.lists(st.one_of(st.integers(-1, 9), IDS)))
def test_rows_are_those_of_a_dictionary(ids: list[int], wanted: list[int]) -> None:
    """Of several rows with one id the last; a missing id has none."""
    truth = {number: row for row, number in enumerate(ids) if number != MISSING}
    rows = Rows(np.array(ids, np.int64)).rows(np.array(wanted, np.int64))
    assert rows.tolist() == [truth.get(number, MISSING) for number in wanted]


def test_suffixes_are_those_of_tables_of_work() -> None:
    tables = {"rocpd_kernel_dispatch_00a1_b2", "rocpd_memory_copy", "_rocpd_kernel_dispatch"}
    assert suffixes(frozenset(tables | {"rocpd_string_77", "rocpd_kernel_dispatch_x"})) == [
        "",
        "_00a1_b2",
    ]
    assert suffixes(frozenset({"rocpd_op", "rocpd_api", "rocpd_string"})) == []
