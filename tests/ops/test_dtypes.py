"""Sizes and promotion of dtypes, compared with torch."""

import itertools
from typing import Any

import pytest

torch: Any = pytest.importorskip("torch")

from pyprof.ops import dtypes


def test_promotion_is_torchs() -> None:
    """For every pair of dtypes; None only if torch refuses or the rank of one is undefined."""
    for first, second in itertools.product(sorted(dtypes._RANK), repeat=2):
        a, b = getattr(torch, first), getattr(torch, second)
        try:
            wanted = str(torch.promote_types(a, b)).removeprefix("torch.")
        except RuntimeError:
            wanted = None
        assert dtypes.promote(first, second) == wanted, (first, second)


def test_item_sizes_are_torchs() -> None:
    known = [name for name in dtypes._SIZES if hasattr(torch, name)]
    assert len(known) > 20
    for name in known:
        assert dtypes.item_size(name) == getattr(torch, name).itemsize, name
