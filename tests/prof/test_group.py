"""Sums of rows by texts: exact, and in row order."""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from pyprof.arrays import Floats, Int64Array
from pyprof.prof.group import add_up_rows, distinct_calls
from pyprof.records.merging import add_up

TEXT = st.sampled_from(["linear", "relu", None])
ROWS = st.lists(
    st.tuples(TEXT, TEXT, st.integers(0, 2**61), st.floats(0, 1e18), st.booleans()), max_size=8
)


@given(rows=ROWS)
def test_sums_of_rows_are_those_of_their_table(
    rows: Sequence[tuple[str | None, str | None, int, float, bool]],
) -> None:
    """The same groups, to the last bit, in the order of their first rows; for all rows or some."""
    columns = [list(column) for column in zip(*rows, strict=True)] or [[] for _ in range(5)]
    keys = {
        name: pa.array(column, pa.string()).dictionary_encode()
        for name, column in zip(("op", "line"), columns[:2], strict=True)
    }
    numbers: dict[str, Int64Array | Floats] = {
        "ns": np.array(columns[2], np.int64),
        "flops": np.array(columns[3], np.float64),
    }
    chosen = np.array(columns[4], bool)
    table = pa.table({**keys, **numbers})
    for mask in (None, chosen):
        expected = table if mask is None else table.filter(pa.array(mask))
        sums = add_up_rows(keys, numbers.items(), mask)
        order = [("op", "ascending"), ("line", "ascending")]
        whole = add_up(expected, ["op", "line"], {"ns": "sum", "flops": "sum"})
        assert sums.sort_by(order).equals(whole.sort_by(order))
        groups = zip(*(expected.column(name).to_pylist() for name in keys), strict=True)
        assert [*dict.fromkeys(groups)] == [
            *zip(*(sums.column(name).to_pylist() for name in keys), strict=True)
        ]


def test_calls_of_two_groups_are_counted_in_both() -> None:
    """The kernels of one call may have different names."""
    group, call = np.array([0, 1, 0, 1, 1]), np.array([0, 0, 1, 2, 2])
    assert distinct_calls(group, call, 2).tolist() == [2, 2]
    assert distinct_calls(group[2:], call[2:], 2).tolist() == [1, 1]
