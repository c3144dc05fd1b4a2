"""Advice on number formats: products without Tensor Cores, TF32, float64."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np

from pyprof import schema
from pyprof.analysis.advice.registry import GPU, NODES, PEAKS, rule
from pyprof.gpu.eligible import FAMILIES
from pyprof.gpu.kernel_dtypes import HALF

if TYPE_CHECKING:
    from collections.abc import Collection

    from numpy.typing import NDArray

    from pyprof.analysis.advice.finding import Advice
    from pyprof.analysis.advice.rule_context import RuleContext
    from pyprof.arrays import Int64Array, Mask

_NOT_TO_MEND = ("device:", "size: a vector", "size: depthwise")
_BY_NAME = ("cublas-simt:", "sgemm:", "simt:", "ffma:")
"""Rules of `pyprof.gpu.tensorcore` whose kernels are products that Tensor Cores can do: not those
with a vector, a depthwise convolution or a Winograd transform."""
_NAMED = "by the kernel's name"
"""The reason where no op is known."""


@rule(
    "a vector as operand: memory limits it",
    "the GPU has no Tensor Cores",
    about="Tensor Cores",
    needs=(GPU, NODES, PEAKS),
)
def half_precision(context: RuleContext) -> Advice | None:
    """Find half-precision products whose kernel surely used no Tensor Cores, with the reason."""
    missed = context.class_matches(lambda each: each.tc.value == "0" and each.dtype in HALF)
    named = _find_by_name(context, HALF) & context.without_op & context.device_has("float16")
    candidates = np.flatnonzero((context.family(*FAMILIES) & missed) | named)
    why = context.why.take(candidates)
    rows = candidates[named[candidates] | ~why.matches(lambda text: text.startswith(_NOT_TO_MEND))]
    texts = np.array([*context.why.values, ""], object)  # a million rows share each
    detail = np.where(named[rows], _NAMED, texts[context.why.index[rows]])
    return context.advice(
        "half-precision products run without Tensor Cores",
        "pad their sizes to multiples of 8, or update cuBLAS and cuDNN; see the reason for each",
        rows,
        context.most(rows, _on_tensor_cores(context, rows, "float16")),
        detail=detail.tolist(),
    )


@rule(
    "the GPU has no TF32: Volta, Turing",
    "the kernel used Tensor Cores",
    "no shapes are known, and by its name the kernel multiplies by a vector, or is not float32",
    about="Tensor Cores",
    needs=(GPU, NODES, PEAKS),
)
def tf32(context: RuleContext) -> Advice | None:
    """Find float32 matrix products and convolutions on CUDA cores of a GPU that has TF32.

    Where the op or its shapes are unknown, the kernel's name is evidence.
    """
    rows = np.flatnonzero(off_tf32(context))
    return context.advice(
        "float32 matrix products and convolutions run without Tensor Cores",
        "torch.set_float32_matmul_precision('high') for products,"
        " torch.backends.cudnn.allow_tf32 = True for convolutions and RNNs; or autocast to"
        " bfloat16",
        rows,
        context.predicted(
            rows,
            _on_tensor_cores(context, rows, "tf32"),
            "--dtype tf32",
            "torch.set_float32_matmul_precision('high')",
            sized=context.sized(rows),
        ),
        detail=np.where(_find_by_name(context, {"float32"})[rows], _NAMED, "").tolist(),
        elsewhere="let the library use TF32 (CuPy: CUPY_TF32=1), or float16 or bfloat16",
    )


@rule(
    "the GPU has TF32: Ampere and later, which tf32 covers",
    "the GPU has no Tensor Cores",
    "a product by a vector: memory limits it",
    about="Tensor Cores",
    needs=(GPU, NODES, PEAKS),
)
def mixed_precision(context: RuleContext) -> Advice | None:
    """Find float32 products on CUDA cores of GPUs with Tensor Cores but no TF32: Volta, Turing."""
    named = _find_by_name(context, {"float32"})
    has_half = context.device_has("float16") & ~context.device_has("tf32")
    rows = np.flatnonzero(
        (context.reason_startswith("dtype: float32 needs TF32") | named) & has_half
    )
    return context.advice(
        "float32 matrix products and convolutions run without Tensor Cores",
        "use float16: torch.autocast('cuda', torch.float16), in training with torch.amp.GradScaler",
        rows,
        _in_half(context, rows, "float16"),
        elsewhere="use float16, which the Tensor Cores of this GPU take",
    )


@rule(
    "the GPU is NVIDIA's, which tf32 and mixed_precision cover",
    "the product is in half precision already",
    about="Tensor Cores",
    needs=(GPU, NODES, PEAKS),
)
def bfloat16(context: RuleContext) -> Advice | None:
    """Find float32 products on matrix cores, which take bfloat16 at several times the rate.

    They are AMD's: Tensor Cores take no plain float32.
    """
    by_type = context.class_matches(lambda each: each.dtype == "float32" and each.tc.value == "1")
    has_both = context.device_has("float32") & context.device_has("bfloat16")
    rows = np.flatnonzero(context.family(*FAMILIES) & by_type & has_both)
    return context.advice(
        "matrix products and convolutions are in float32",
        "with torch.autocast('cuda', torch.bfloat16), if its precision suffices",
        rows,
        _in_half(context, rows, "bfloat16"),
        elsewhere="use bfloat16, if its precision suffices",
    )


def off_tf32(context: RuleContext) -> Mask:
    """Find float32 products on CUDA cores of a GPU that has TF32."""
    off = context.reason_startswith("TF32: off") | _find_by_name(context, {"float32"})
    return off & context.device_has("tf32")


def _on_tensor_cores(
    context: RuleContext, rows: Int64Array, dtype: str, *, narrower: int = 1
) -> NDArray[np.float64]:
    ns = context.faster(rows, dtype, narrower=narrower)
    return np.where(np.isnan(ns), context.at_higher_peak(rows, dtype), ns)


def _in_half(context: RuleContext, products: Int64Array, dtype: str) -> int | None:
    """Return the most that autocast could save: by products, and half the time of other kernels.

    Under autocast, what is still in float32 has to be: other kernels count only if the product
    before them on their stream is in float32, as in a second network that is not under autocast.
    """
    others = context.class_matches(lambda each: each.dtype == "float32")
    others &= context.chosen & ~context.is_one("dir", "optim", "comm")
    others[products] = False
    in_half = context.class_matches(lambda each: each.tc.value == "1" and each.dtype in HALF)
    is_product = in_half & context.chosen
    is_product[products] = True
    order, _ = context.by_stream
    of_any = np.flatnonzero(is_product[order])
    rows = np.flatnonzero(others[order]) if len(products) else products
    before = of_any[np.maximum(np.searchsorted(of_any, rows) - 1, 0)]
    rows = order[rows[np.isin(order[before], products)]]
    gains = _on_tensor_cores(context, products, dtype, narrower=_NARROWER)
    return context.most(np.r_[products, rows], np.r_[gains, context.ns[rows] / _NARROWER])


def _find_by_name(context: RuleContext, dtypes: Collection[str]) -> Mask:
    """Find kernels that are, by name, products on CUDA cores, of no op or of unknown shapes."""
    is_product = context.class_matches(
        lambda each: (
            each.dtype in dtypes and each.tc.value == "0" and each.tc.rule.startswith(_BY_NAME)
        )
    )
    of_product = context.without_op | context.family(*FAMILIES)
    return is_product & of_product & (context.table.costs.flops < 0)


_MAX_SMALL = 4096
"""Elements of an input up to which an op takes as long in any type."""
_NARROWER = 2
_MAX_SLOWER_ON_CPU = 5
"""How much longer convolutions and recurrent layers may take in float64, which oneDNN lacks: 1.3 to
5 times as long as in float32 (torch 2.13, one core)."""
_BY_VECTOR = re.compile(r"gemv|dot_kernel|axpy", re.IGNORECASE)
"""Kernels that memory limits in any type."""


@rule(
    "a few numbers, as a loss, a learning rate or a scalar beside a large input",
    "another type: float32 and less, integers",
    "a copy or a conversion, whose type says nothing of what is computed",
    about="float64",
    needs=(NODES,),
)
def double_precision(context: RuleContext) -> Advice | None:
    """Find ops on float64; float32 has half the bytes, and its own peak."""
    by_name = context.class_matches(lambda each: each.dtype == "float64")
    known = context.call_matches(lambda _: True)
    by_input = context.call_matches(
        lambda call: any(t.dtype == "float64" and t.numel > _MAX_SMALL for t in call.tensors)
    )
    is_double = np.where(known, by_input, by_name & (context.elements > _MAX_SMALL))
    computes = (context.kind(schema.KERNEL) | context.kind(schema.CPU)) & ~context.family("copy")
    rows = np.flatnonzero(computes & is_double)
    ns = context.faster(rows, "float32", tensor_core=False, narrower=_NARROWER)
    # half the bytes and, on a CPU, twice as many numbers per instruction; a GPU may gain more
    slow_on_cpu = context.kind(schema.CPU) & context.family("conv", "rnn")
    factor = np.where(slow_on_cpu, _MAX_SLOWER_ON_CPU, _NARROWER)[rows]
    by_bytes = context.ns[rows] * (1 - 1 / factor)
    by_peak = context.at_higher_peak(rows, "float32", tensor_core=False)
    unknown = np.where(context.named(_BY_VECTOR)[rows], by_bytes, np.fmax(by_bytes, by_peak))
    return context.advice(
        "computation is in float64",
        f"if float32 suffices: .float() where data come in{_describe_sources(context, rows)}, for"
        " NumPy's arrays are float64 and torch.from_numpy keeps that; see also"
        " torch.set_default_dtype",
        rows,
        context.most(rows, np.where(np.isnan(ns), unknown, ns)),
        elsewhere="if float32 suffices: dtype=float32 where arrays are made (float64 is default)",
    )


_MAX_SOURCES = 3


def _describe_sources(context: RuleContext, rows: Int64Array) -> str:
    """Return the lines from which float64 may come, in brackets; "" if unknown."""
    if not len(rows):
        return ""
    names, lines = context.calls.name, context.calls.line
    calls = np.flatnonzero(names.is_in("from_numpy", "double") & lines.matches()).tolist()
    sources = dict.fromkeys(f"{names.at(c)} at {lines.at(c).rpartition('/')[2]}" for c in calls)
    return f" ({', '.join([*sources][:_MAX_SOURCES])})" if sources else ""
