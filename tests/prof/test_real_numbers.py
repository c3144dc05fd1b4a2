"""Numbers of real captures, counted by hand from the shapes that the captures hold."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

import pytest

import pyprof

if TYPE_CHECKING:
    from pathlib import Path

    import pandas as pd


@pytest.fixture(scope="module")
def resnet50(captures: Path) -> pd.DataFrame:
    """Give the rows of a ResNet-50's training on a V100, by torch 1.8."""
    rows: pd.DataFrame = pyprof.load(captures / "kineto-v100-resnet50-2021" / "trace.json.gz")
    return rows


def test_a_relu_in_place_reads_and_writes_once(resnet50: pd.DataFrame) -> None:
    """It runs as clamp_min(x, 0, out=x): x is no second operand; no row beats the memory much."""
    relu = resnet50[(resnet50.op == "relu_") & (resnet50.dir == "fprop")]
    assert len(relu) == 294
    assert relu.bytes.tolist() == [2 * 4 * prod(sizes[0]) for sizes in relu.sizes]
    large = relu[relu.bytes > 2**27]  # 20 times the cache
    assert large.eff.between(80, 100).all()


def test_more_than_the_peak_by_winograd_is_said_to_be_that(resnet50: pd.DataFrame) -> None:
    """A convolution of 3 x 3 by tiles of 4 x 4 multiplies a fourth as often as the op counts."""
    above = resnet50[(resnet50.eff > 100) & (resnet50.tflops > 1)]
    assert len(above) > 100
    assert above.why.str.startswith("above peak: by Winograd or FFT").all()
    assert above.eff.max() < 100 * 4
