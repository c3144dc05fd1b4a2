"""Whether a kernel can be of an op, by both names."""

import pytest

from pyprof.parse.graphs.fitting import fits

GEMM = "ampere_sgemm_128x64_tn"
NCCL = "ncclDevKernel_AllReduce_Sum_f16_RING_LL(ncclDevComm*)"
SOFTMAX = "void (anonymous namespace)::softmax_warp_forward<float, float, float, 8>(float*)"


@pytest.mark.parametrize(
    ("op", "kernel", "expected"),
    [
        ("aten::mm", GEMM, True),
        ("aten::add", GEMM, False),
        ("vllm::unified_attention", GEMM, True),  # a library's op may do anything
        ("c10d::allreduce_", NCCL, True),
        ("aten::mm", NCCL, False),
        ("aten::relu", SOFTMAX, False),
        ("aten::mm, seq = 3", SOFTMAX, False),
        (None, GEMM, False),
        (None, SOFTMAX, True),
    ],
)
def test_an_op_fits_unless_the_kernel_does_other_work(
    op: str | None, kernel: str, *, expected: bool
) -> None:
    assert fits(op, kernel) is expected
