"""Gradients that a fill zeroes are written once; whatever else is filled changes nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import pyprof
from pyprof.marker import encode_seq
from tests.builders import Range, Work, nsys_db

if TYPE_CHECKING:
    from pathlib import Path

FILL = (
    "void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<float>, "
    "std::array<char*, 1> >(int, at::native::FillFunctor<float>, std::array<char*, 1>)"
)
KERNEL = "void at::native::(anonymous namespace)::embedding_backward_feature_kernel<float>(long)"
PICK = "void at::native::(anonymous namespace)::indexSelectLargeIndex<float, long>(long)"
GRADIENT, IDS, TABLE = [10, 8], [10], [500, 8]
WHOLE, ZEROS = 4 * 80 + 8 * 10 + 4 * 4000, 4 * 4000  # go and indices read, the table's written


def _op(name: str, *sizes: list[int], dtypes: tuple[str, ...]) -> str:
    return encode_seq(name, op_id=1, sizes=list(sizes), dtypes=list(dtypes))


BACKWARD = encode_seq(
    "aten::embedding_dense_backward",
    op_id=1,
    sizes=[GRADIENT, IDS, [], [], []],
    dtypes=["float32", "int64", "", "", ""],
    inputs=["", "", "500", "-1", "False"],
)
PICKED = _op("aten::embedding", TABLE, IDS, dtypes=("float32", "int64"))


@pytest.mark.parametrize(
    ("outer", "inner", "fill", "moved"),
    [
        # an op of its own inside, a memset, a kernel without an op: each writes the table
        (BACKWARD, ("aten::zero_", TABLE), Work(FILL), [ZEROS, WHOLE - ZEROS]),
        (BACKWARD, None, Work("", kind="memset", bytes=ZEROS), [ZEROS, WHOLE - ZEROS]),
        (BACKWARD, None, Work(FILL), [ZEROS, WHOLE - ZEROS]),
        # something else is filled inside
        (BACKWARD, ("aten::zero_", [7]), Work(FILL), [4 * 7, WHOLE]),
        (BACKWARD, None, Work("", kind="memset", bytes=64), [64, WHOLE]),
        # no gradient: what it fills is its own business
        (PICKED, ("aten::zero_", [80]), Work(FILL), [4 * 80, 8 * 10 + 2 * 4 * 80]),
    ],
)
def test_zeros_are_written_by_the_fill(
    tmp_path: Path, outer: str, inner: tuple[str, list[int]] | None, fill: Work, moved: list[int]
) -> None:
    """The fill's bytes, and the rest, which is the kernel's."""
    ranges = [Range(outer, (0, 100))]
    if inner is not None:
        ranges.append(Range(_op(inner[0], inner[1], dtypes=("float32",)), (5, 30)))
    name = KERNEL if outer == BACKWARD else PICK
    work = [
        Work(fill.name, (1000, 1100), (10, 20), kind=fill.kind, bytes=fill.bytes),
        Work(name, (1200, 1300), (40, 50)),
    ]
    rows = pyprof.load(nsys_db(tmp_path / "net.sqlite", work, ranges))
    assert rows.bytes.tolist() == moved
    assert rows.flops[0] == 0
