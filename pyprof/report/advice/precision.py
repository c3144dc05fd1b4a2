"""float16 and bfloat16 products that missed the Tensor Cores."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pyprof.gpu.eligible import FAMILIES
from pyprof.gpu.kernel_dtypes import HALF
from pyprof.report.advice.registry import rule

if TYPE_CHECKING:
    from pyprof.arrays import Mask
    from pyprof.report.advice.case import Case
    from pyprof.report.advice.finding import Advice

_NOT_TO_MEND = ("device:", "size: a vector", "size: depthwise")


@rule(
    "a vector as operand: memory limits it",
    "the GPU has no Tensor Cores",
)
def half_precision(case: Case) -> Advice | None:
    """Find half-precision products whose kernel surely used no Tensor Cores, with the reason."""
    number, judged = case.table.judged
    missed = np.array([entry.tc.value == "0" and entry.dtype in HALF for entry in judged], bool)
    candidates = np.flatnonzero(case.family(*FAMILIES) & missed[number])
    texts = [*case.why.values, ""]
    reasons = [texts[place] for place in case.why.index[candidates].tolist()]
    keep = np.array([not reason.startswith(_NOT_TO_MEND) for reason in reasons], bool)
    rows = candidates[keep]
    return case.advice(
        "half_precision",
        "half-precision products run without Tensor Cores",
        "pad their sizes to multiples of 8, or update cuBLAS and cuDNN; see the reason for each",
        rows,
        case.most(rows, case.faster(rows, "float16")),
        detail=[reason for reason, is_kept in zip(reasons, keep.tolist(), strict=True) if is_kept],
    )


# float32 products that TF32 would speed up.


_BY_NAME = ("cublas-simt:", "sgemm:", "simt:", "ffma:")
"""Rules of `pyprof.gpu.tensorcore` whose kernels are products that Tensor Cores can do: not those
with a vector, a depthwise convolution or a Winograd transform."""


@rule(
    "the GPU has no TF32: Volta, Turing",
    "the kernel used Tensor Cores",
    "no op is known, and by its name the kernel multiplies by a vector, or is not float32",
)
def tf32(case: Case) -> Advice | None:
    """Find float32 matrix products and convolutions on CUDA cores of a GPU that has TF32.

    Where no op is known, the kernel's name is evidence.
    """
    named = _float32_by_name(case)
    rows = np.flatnonzero((case.says_why("TF32: off") | named) & case.device_has("tf32"))
    ns = case.faster(rows, "tf32")
    return case.advice(
        "tf32",
        "float32 matrix products and convolutions run without Tensor Cores",
        "torch.set_float32_matmul_precision('high') for products,"
        " torch.backends.cudnn.allow_tf32 = True for convolutions; or autocast to bfloat16",
        rows,
        case.most(rows, np.where(np.isnan(ns), case.at_higher_peak(rows, "tf32"), ns)),
        detail=np.where(named[rows], "by the kernel's name", "").tolist(),
    )


def _float32_by_name(case: Case) -> Mask:
    """Find kernels without a known op whose names tell a float32 product on CUDA cores."""
    number, judged = case.table.judged
    is_float32 = [
        each.dtype == "float32" and each.tc.value == "0" and each.tc.rule.startswith(_BY_NAME)
        for each in judged
    ]
    op_known = case.texts["op"].is_valid().to_numpy(zero_copy_only=False)
    return np.asarray(case.chosen & ~op_known & np.array(is_float32, bool)[number])
