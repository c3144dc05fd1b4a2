"""Why an op that Tensor Cores could have computed was not computed there, or not at full speed.

Dated rules: cuBLAS 11 and cuDNN 7.6.3 pad odd sizes by themselves: since then a bad size only
costs speed and no longer rules out Tensor Cores; torch 1.12 turned TF32 off for matrix products.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyprof.gpu.kernel_dtypes import FIRST_TENSOR_CORES, tensor_core_takes

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

FAMILIES = frozenset({"gemm", "conv", "attention", "rnn"})
"""Op families whose arithmetic is matrix products."""

_OF_CUDNN = frozenset({"conv", "rnn"})
"""Families that follow cuDNN's switch of TF32, not that of matrix products."""

ALIGNMENT: Mapping[str, int] = {
    "float16": 8, "bfloat16": 8, "float32": 4, "tf32": 4, "float64": 2,
    "int8": 16, "uint8": 16, "float8_e4m3fn": 16, "float8_e5m2": 16,
}  # fmt: skip
"""Elements in 16 bytes. Source: NVIDIA, "Matrix Multiplication Background", Tensor Core needs."""

_AMPERE = (8, 0)
_SMALL = 16
"""The smallest side that fills a tile of one Tensor Core instruction."""


def eligible(
    family: str,
    tc: str,
    *,
    dtype: str | None = None,
    cc: tuple[int, int] | None = None,
    sizes: tuple[int | None, int | None, int | None] = (None, None, None),
    groups: int = 1,
) -> str | None:
    """Return the reason why the op did not use Tensor Cores, or used them padded; else None.

    `tc` is the kernel's verdict, `sizes` are M, N and K of the product (for a convolution: output
    positions, output channels and input channels per group), None if unknown. The result is also
    None if nothing is wrong, the family has no matrix products, or the verdict is open.
    """
    if family not in FAMILIES or tc not in {"0", "1"}:
        return None
    odd = _name_odd(family, dtype, sizes)
    if tc == "1":
        return f"alignment: {odd}: padded, slower" if odd else None
    reason = f"library: its heuristics chose CUDA cores for {dtype}"
    if odd:
        reason = f"alignment: {odd}, needed before cuBLAS 11 and cuDNN 7.6.3"
    return next(_reasons(family, dtype, cc, sizes, groups), reason)


def _reasons(
    family: str,
    dtype: str | None,
    cc: tuple[int, int] | None,
    sizes: tuple[int | None, int | None, int | None],
    groups: int,
) -> Iterator[str]:
    """Yield the reasons that are no choice of the library, the most certain first."""
    m, n, k = sizes
    if groups > 1 and (k == 1 or n == 1):
        yield "size: depthwise convolution, one channel per group: memory limits it"
    if 1 in {m, n}:
        yield "size: a vector as operand: memory limits it, Tensor Cores would not help"
    if cc is not None:
        yield from _lacking(cc, dtype)
    extents = [size for size in sizes if size is not None]
    if extents and min(extents) < _SMALL:
        yield f"size: {min(extents)} of {'x'.join(map(str, extents))} fills no Tensor Core tile"
    if dtype is None:
        yield "dtype: unknown"
    if dtype == "float32":
        unsure = "; the GPU may lack it" if cc is None else ""
        if family in _OF_CUDNN:
            yield f"TF32: off (torch.backends.cudnn.allow_tf32), or cuDNN chose CUDA cores{unsure}"
        switch = "torch.set_float32_matmul_precision('high')"
        yield f"TF32: off, torch's default since 1.12; {switch} turns it on{unsure}"


def _lacking(cc: tuple[int, int], dtype: str | None) -> Iterator[str]:
    """Yield what devices of a compute capability lack for inputs of a type."""
    version = f"{cc[0]}.{cc[1]}"
    if cc < FIRST_TENSOR_CORES:
        yield f"device: no Tensor Cores at compute capability {version}"
    if dtype == "float32" and cc < _AMPERE:
        yield f"dtype: float32 needs TF32, which {version} lacks; use float16 by autocast"
    if dtype not in {None, "float32"} and not tensor_core_takes(cc, str(dtype)):
        yield f"dtype: no Tensor Cores for {dtype} at compute capability {version}"


def _name_odd(
    family: str, dtype: str | None, sizes: tuple[int | None, int | None, int | None]
) -> str:
    """Name the contiguous sides, N and K, that are not multiples of 16 bytes; M may be any."""
    if (step := ALIGNMENT.get(str(dtype))) is None:
        return ""
    sides = ("output channels", "input channels") if family == "conv" else ("N", "K")
    named = zip(sides, sizes[1:], strict=True)
    odd = ", ".join(f"{side} = {size}" for side, size in named if size and size % step)
    return odd and f"{odd} not a multiple of {step}"
