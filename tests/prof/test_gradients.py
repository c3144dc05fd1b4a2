"""Both gradients of a convolution as one op of its own, as torch calls it since 1.11."""

from pathlib import Path

import pytest

import pyprof
from pyprof.marker import encode_seq
from tests.builders import Range, Work, nsys_db

GO, X, W = [2, 6, 8, 8], [2, 4, 8, 8], [6, 4, 3, 3]
ONE = 2 * (6 * 4 * 3 * 3) * 2 * 8 * 8
MOVED = 4 * (2 * 6 * 64 + 2 * 4 * 64 + 6 * 4 * 9)
DGRAD = "sm80_xmma_dgrad_implicit_gemm_tf32f32_tf32f32_f32_nhwckrsc_nhwc_tilesize128x64x16_tensor"
WGRAD = "sm80_xmma_wgrad_implicit_gemm_tf32f32_tf32f32_f32_nhwckrsc_nhwc_tilesize128x64x16_tensor"
LAYOUT = "void cudnn::ops::nchwToNhwcKernel<float, float>(int)"


@pytest.mark.parametrize(
    ("mask", "kernels", "flops", "moved"),
    [
        # each gradient needs the same, whichever kernel is the faster; one kernel is one gradient
        ("", (DGRAD, WGRAD), [ONE, ONE], [MOVED, MOVED]),
        ("", (LAYOUT, DGRAD, WGRAD), [0, ONE, ONE], [None, MOVED, MOVED]),
        ("", (WGRAD,), [ONE], [MOVED]),
        ("[True, True, False]", (DGRAD, WGRAD), [ONE, ONE], [MOVED, MOVED]),
        ("[False, True, False]", (WGRAD,), [ONE], [MOVED]),
        ("[True, True, False]", (WGRAD,), [2 * ONE], [2 * MOVED]),  # said to be both
    ],
)
def test_each_gradient_costs_the_same(
    tmp_path: Path, mask: str, kernels: tuple[str, ...], flops: list[int], moved: list[int | None]
) -> None:
    """By the mask where it was recorded, else by the number of kernels that compute."""
    text = encode_seq(
        "aten::convolution_backward",
        op_id=1,
        sizes=[GO, X, W, *[[]] * 8],
        dtypes=[*["float32"] * 3, *[""] * 8],
        inputs=["", "", "", "", "[1, 1]", "[1, 1]", "[1, 1]", "False", "[0, 0]", "1", mask],
    )
    work = [
        Work(name, (1000 + 1000 * at, 1100 + 1200 * at), (10 + 10 * at, 15 + 10 * at))
        for at, name in enumerate(kernels)
    ]
    rows = pyprof.load(nsys_db(tmp_path / "net.sqlite", work, [Range(text, (0, 100))]))
    assert rows.flops.tolist() == flops
    assert rows.bytes.astype(object).where(rows.bytes.notna(), None).tolist() == moved
