"""Reasons why Tensor Cores were not used, or used with padding."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyprof.gpu.eligible import ALIGNMENT, eligible
from tests.known import known

UNKNOWN = (None, None, None)


@pytest.mark.parametrize(
    ("start", "cc", "dtype", "sizes"),
    [
        ("device: no Tensor Cores at compute capability 6.1", (6, 1), "float16", UNKNOWN),
        ("dtype: float32 needs TF32, which 7.0 lacks", (7, 0), "float32", UNKNOWN),
        ("dtype: no Tensor Cores for bfloat16 at compute", (7, 5), "bfloat16", UNKNOWN),
        ("dtype: no Tensor Cores for complex64", (8, 0), "complex64", UNKNOWN),
        ("dtype: no Tensor Cores for float64", (8, 6), "float64", UNKNOWN),
        ("TF32: off, torch's default", (8, 0), "float32", UNKNOWN),
        ("TF32: off, torch's default", None, "float32", (512, 512, 512)),
        ("size: a vector", (8, 0), "float16", (1, 4096, 4096)),
        ("size: a vector", (7, 0), "float32", (1, 4096, 4096)),
        ("size: 3 of 64x64x3", (8, 0), "float16", (64, 64, 3)),
        ("alignment: K = 4095 not a", None, "float16", (512, 512, 4095)),
        ("library: its heuristics", None, "float16", (512, 512, 4096)),
        ("dtype: unknown", None, None, UNKNOWN),
    ],
)
def test_unused_tensor_cores_have_a_reason(
    start: str,
    cc: tuple[int, int] | None,
    dtype: str | None,
    sizes: tuple[int | None, int | None, int | None],
) -> None:
    reason = known(eligible("gemm", "0", cc=cc, dtype=dtype, sizes=sizes))
    assert reason.startswith(start)


@pytest.mark.parametrize(
    ("family", "tc", "dtype", "sizes", "groups", "words"),
    [
        # TF32 of cuDNN is on unless the user turned it off
        ("conv", "0", "float32", (512, 64, 64), 1, "cudnn.allow_tf32"),
        ("rnn", "0", "float32", UNKNOWN, 1, "cudnn.allow_tf32"),
        ("conv", "0", "float16", (512, 64, 1), 64, "size: depthwise"),
        (
            *("gemm", "1", "float16", (512, 50257, 768), 1),
            "alignment: N = 50257 not a multiple of 8: padded, slower",
        ),
    ],
    ids=[
        "a convolution's own switch",
        "that of recurrent layers",
        "a depthwise convolution",
        "padding",
    ],
)
def test_other_reasons(
    family: str, tc: str, dtype: str, sizes: tuple[int, int, int], groups: int, words: str
) -> None:
    found = eligible(family, tc, dtype=dtype, cc=(8, 0), sizes=sizes, groups=groups)
    assert words in known(found)


@pytest.mark.parametrize("family", ["gemm", "conv"])
def test_an_unknown_gpu_may_lack_tf32(family: str) -> None:
    sizes = (512, 512, 512)
    reason = known(eligible(family, "0", dtype="float32", sizes=sizes))
    assert (
        reason
        == f"{eligible(family, '0', dtype='float32', cc=(8, 0), sizes=sizes)}; the GPU may lack it"
    )


@pytest.mark.parametrize(
    ("family", "tc"), [("pointwise", "0"), ("gemm", "?"), ("gemm", "-"), ("", "0")]
)
def test_other_rows_have_no_reason(family: str, tc: str) -> None:
    assert eligible(family, tc, dtype="float32", cc=(8, 0)) is None


@given(
    dtype=st.sampled_from(sorted(ALIGNMENT)),
    n=st.integers(1, 512),
    k=st.integers(1, 512),
    m=st.integers(1, 512),
)
def test_aligned_sizes_are_not_padded(dtype: str, m: int, n: int, k: int) -> None:
    """If Tensor Cores are used, only N or K can be unaligned; M is free."""
    step = ALIGNMENT[dtype]
    reason = eligible("gemm", "1", dtype=dtype, sizes=(m, n, k))
    assert (reason is None) == (n % step == 0 and k % step == 0)
