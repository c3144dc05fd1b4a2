"""Reasons why rows are above their peak."""

import pytest

from pyprof.marker import Call, Tensor, encode_op
from pyprof.parse import parse
from pyprof.prof.columns.standard import COLUMNS
from pyprof.prof.table import Table
from tests.analysis.captures import Range, Work, capture

GIVEN = Tensor((64, 256, 56, 56), "float32"), Tensor((256, 256, 3, 3), "float32")
CONV = encode_op(Call("torch", "conv2d", GIVEN))
FFT = (
    "void fft2d_r2c_32x32<float, (bool)0, (unsigned int)1, (bool)0>(float2 *, const T1 *)",
    "ampere_gcgemm_32x32_nt",
    "void fft2d_c2r_32x32<float, (bool)0, (bool)0, (unsigned int)1>(T1 *, float2 *)",
)
FEWER = "above peak: by Winograd or FFT, which needs fewer FLOPs than the counted definition"
OTHER = "above peak: its FLOPs, its type or the clock is not what it seems"


@pytest.mark.parametrize(
    ("kernels", "reason"),
    [
        (("ampere_scudnn_winograd_128x128_ldg1_ldg4_relu_tile148t_nt_v1",), FEWER),
        (("miopenSp3AsmConv_v21_1_3_gfx9_fp32_f3x2_stride1",), FEWER),
        (FFT, FEWER),
        (("ampere_scudnn_128x64_relu_interior_nn_v1",), OTHER),
    ],
)
def test_winograd_and_fft_kernels_explain_why_a_row_is_above_its_peak(
    kernels: tuple[str, ...], reason: str
) -> None:
    """Their transforms give them away; other convolutions above the peak are called wrong."""
    work = [
        Work((1000 * at, 1000 * at + 500), (10 * at, 10 * at + 5), name)
        for at, name in enumerate(kernels, 1)
    ]
    table = Table(parse(capture(work, ranges=[Range(CONV, (1, 100))])))
    said = COLUMNS["why"].values(table).to_pylist()
    above = [text for text in said if text.startswith("above peak")]
    assert [text.split(";")[0] for text in above] == [reason]
