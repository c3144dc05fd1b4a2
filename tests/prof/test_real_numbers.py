"""Numbers of real captures, counted by hand from shapes in the captures."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import pyprof

if TYPE_CHECKING:
    import pandas as pd


@pytest.fixture(scope="module")
def resnet50(captures: Path) -> pd.DataFrame:
    """Return the rows of a ResNet-50's training on a V100, by torch 1.8."""
    rows: pd.DataFrame = pyprof.load(captures / "kineto-v100-resnet50-2021" / "trace.json.gz")
    return rows


@pytest.mark.slow
def test_a_relu_in_place_reads_and_writes_once(resnet50: pd.DataFrame) -> None:
    """It runs as clamp_min(x, 0, out=x): x is not a second operand; no row far exceeds its peak."""
    relu = resnet50[(resnet50.op == "relu_") & (resnet50.dir == "fprop")]
    assert len(relu) == 294
    assert relu.bytes.tolist() == [2 * 4 * prod(sizes[0]) for sizes in relu.sizes]
    large = relu[relu.bytes > 2**27]  # 20 times the cache
    assert large.eff.between(80, 100).all()


def test_a_row_above_its_peak_by_winograd_says_so(resnet50: pd.DataFrame) -> None:
    """In 4 x 4 tiles a 3 x 3 convolution multiplies a fourth as often as the op counts."""
    above = resnet50[(resnet50.eff > 100) & (resnet50.tflops > 1)]
    assert len(above) > 100
    assert above.why.str.startswith("above peak: by Winograd or FFT").all()
    assert above.eff.max() < 100 * 4


@pytest.fixture(scope="module")
def apex(captures: Path) -> pd.DataFrame:
    """Return the rows of a language model's training on a V100, by torch 1.4."""
    rows: pd.DataFrame = pyprof.load(captures / "nvprof-v100-apex" / "net.sql")
    return rows


@pytest.mark.slow
def test_a_dense_gradient_is_written_once_by_the_fill_that_zeroes_it(apex: pd.DataFrame) -> None:
    """The kernel of the loss writes 700 of 700 x 33278 elements, that of embedding a few rows."""
    loss = apex[(apex.op == "cross_entropy") & apex.seq.eq("128") & (apex.dir != "fprop")]
    # the memset: every logit; the kernel: the incoming gradient, 4 bytes, and 700 targets
    assert loss.bytes.tolist() == [4 * 700 * 33278, 4 + 8 * 700]
    table = apex[(apex.op == "embedding") & (apex.dir == "bprop")]
    # a fill and a kernel of each table: of 35 positions, all looked up, and of 33278 words, 700
    picked = 4 * 200 + 8  # a row of the incoming gradient, and its index
    assert table.bytes.tolist() == [4 * 200 * 35, 35 * picked, 4 * 200 * 33278, 700 * picked]
    assert table.flops.tolist() == [0, 35 * 200, 0, 700 * 200]
    assert not (table.eff > 100).any()


def test_a_fill_inside_the_gradient_of_a_loss_has_its_bytes(resnet50: pd.DataFrame) -> None:
    """In later torch it is an op inside nll_loss_backward, a memset of 32 x 1000 elements."""
    loss = resnet50[(resnet50.op == "cross_entropy_loss") & (resnet50.dir != "fprop")]
    nll = loss[loss.kernel.str.contains("NLL|memset")]
    assert sorted(set(nll.bytes)) == [4 + 8 * 32, 4 * 32 * 1000]


@pytest.mark.slow
def test_a_convolutions_output_size_is_that_of_its_backward_node(
    captures: Path, resnet50: pd.DataFrame
) -> None:
    """The trace has no strides; the node's gradient has the shape of the forward's output."""
    path = captures / "kineto-v100-resnet50-2021" / "trace.json.gz"
    wanted = Counter[tuple[int, int]]()
    for event in json.loads(gzip.decompress(path.read_bytes()))["traceEvents"]:
        if event["name"] == "aten::cudnn_convolution_backward":
            x, out, w = event["args"]["Input Dims"][:3]
            flops = 2 * prod(w) * out[0] * prod(out[2:])
            wanted[flops, 4 * (prod(x) + prod(w) + prod(out))] += 1
    forward = resnet50[(resnet50.op == "conv2d") & (resnet50.dir == "fprop")]
    found = forward.groupby("opid")[["flops", "bytes"]].sum(min_count=1)
    assert len(found) == 318
    assert Counter(found.itertuples(index=False, name=None)) == wanted


@pytest.mark.slow
def test_a_batch_norm_trains_if_its_kernel_computes_statistics(resnet50: pd.DataFrame) -> None:
    """The trace has no flag; bn_fw_tr computes statistics: 4 more FLOPs an element, 8 in all."""
    norm = resnet50[(resnet50.op == "batch_norm") & (resnet50.dir == "fprop")]
    assert len(norm) == 318
    elements = norm.sizes.map(lambda sizes: prod(sizes[0]))
    channels = norm.sizes.map(lambda sizes: int(sizes[1][0]))
    assert (norm.flops == 8 * elements).all()
    # x, out; scale, shift; running mean and variance read and written; mean and deviation kept
    assert (norm.bytes == 4 * (2 * elements + 8 * channels)).all()
    assert (norm.eff < 100).all()
