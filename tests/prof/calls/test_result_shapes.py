"""What the backward node tells of its forward op: the shape of the result."""

from pathlib import Path

import pytest

import pyprof
from pyprof.marker import encode_seq
from tests.builders import Range, Work, nsys_db

X, W, OUT = [2, 4, 8, 8], [6, 4, 3, 3], [2, 6, 4, 4]
CONV = "sm80_xmma_fprop_implicit_gemm_f32f32_tf32f32_f32_nhwckrsc_nhwc_tilesize128x128x16"


def _forward_flops(folder: Path, *nodes: tuple[int, list[int]]) -> object:
    """Load a convolution of unknown stride and nodes of a sequence number and a gradient's size."""
    forward = encode_seq("aten::cudnn_convolution", seq=5, op_id=1, sizes=[X, W, [], [], []])
    ranges, work = [Range(forward, (0, 100))], [Work(CONV, (1000, 1100), (10, 20))]
    for at, (seq, size) in enumerate(nodes, 1):
        text = encode_seq("ConvolutionBackward0", seq=seq, op_id=2, sizes=[size])
        ranges.append(Range(text, (200 * at, 200 * at + 100)))
        work.append(Work(CONV, (1000 + 200 * at, 1100 + 200 * at), (200 * at + 10, 200 * at + 20)))
    rows = pyprof.load(nsys_db(folder / "net.sqlite", work, ranges))
    assert rows.dir.tolist() == ["fprop", *["bprop"] * len(nodes)]
    return None if rows.flops.isna()[0] else int(rows.flops[0])


@pytest.mark.parametrize(
    ("nodes", "flops"),
    [
        ([(5, OUT)], 2 * (6 * 4 * 3 * 3) * 2 * 4 * 4),
        ([(5, OUT), (6, [2, 6, 8, 8])], 2 * (6 * 4 * 3 * 3) * 2 * 4 * 4),
        ([], None),
        ([(6, OUT)], None),  # another op's
        ([(5, OUT), (5, [2, 6, 8, 8])], None),  # two say different things
        ([(5, [2, 6, 16])], None),  # no image
        ([(5, [3, 6, 4, 4])], None),  # another batch
    ],
)
def test_a_convolution_of_unknown_stride(
    tmp_path: Path, nodes: list[tuple[int, list[int]]], flops: int | None
) -> None:
    """2 operations for each filter element and position, where one node of it tells positions."""
    assert _forward_flops(tmp_path, *nodes) == flops
