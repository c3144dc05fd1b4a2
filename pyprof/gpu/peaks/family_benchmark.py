"""Measure the share of a GPU's roofline that kernels of each family reach. Needs torch.

The families are those of the table in `efficiency`: products, batched products, softmax, norms and
point-wise kernels in float32, and fused attention in float16. The share is the median over shapes.
"""

from __future__ import annotations

from functools import partial
from statistics import median
from typing import TYPE_CHECKING, Any, NamedTuple

from pyprof.errors import PyprofError
from pyprof.gpu.peaks import Device, peaks
from pyprof.gpu.peaks.microbenchmark import best_s, gpu_clock, load_torch

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from pyprof.gpu.peaks import Peaks
    from pyprof.gpu.peaks.microbenchmark import Clock

_BYTES = {"float32": 4, "float16": 2}
SCALE = 64
"""Factor of all shapes, so that kernels take longer than a launch on any GPU."""
_BUDGET_S = 0.1
"""Time for one shape."""


class _Work(NamedTuple):
    """One kernel: its FLOPs, and the least that it moves."""

    family: str
    flops: float
    elements: int
    """Read and written, each once."""
    run: Callable[[], object]
    dtype: str = "float32"


def measure_shares(device: str) -> Mapping[str, float]:
    """Return the shares of its datasheet's roofline that `cuda` or `cuda:N` reaches; {} for a CPU.

    Raises PyprofError without torch, and if the memory is full.
    """
    torch = load_torch()
    if not device.startswith("cuda"):
        return {}
    properties = torch.cuda.get_device_properties(torch.device(device))
    known = peaks(Device(properties.name))
    try:
        return shares(torch, device, known, gpu_clock(torch, device)) if known else {}
    except torch.cuda.OutOfMemoryError as error:
        raise PyprofError(
            f"{device} has too little free memory: end other programs that use it"
        ) from error


def shares(
    torch: Any,  # noqa: ANN401 - a module that may be absent
    device: str,
    known: Peaks,
    clock: Clock,
    *,
    scale: int = SCALE,
    budget_s: float = _BUDGET_S,
) -> Mapping[str, float]:
    """Return shares of the roofline by family and type, such as "bmm float32".

    Types without a peak are left out. A group of kernels ends at the first that the device or this
    torch refuses.
    """
    reached: dict[str, list[float]] = {}
    bandwidth = known.bandwidth
    for make in (_products, _streams, _attention):
        try:
            for work in make(torch, device, scale):
                rate = known.flops(work.dtype, tensor_core=work.dtype == "float16")
                if rate is None or bandwidth is None:
                    continue
                moved = work.elements * _BYTES[work.dtype]
                roof_s = max(work.flops / rate.value, moved / bandwidth.value)
                share = roof_s / max(best_s(work.run, clock, budget_s), 1e-9)
                reached.setdefault(f"{work.family} {work.dtype}", []).append(share)
        except torch.cuda.OutOfMemoryError:
            raise
        except (RuntimeError, TypeError):
            continue
    return {key: median(values) for key, values in reached.items()}


def _products(torch: Any, device: str, scale: int) -> Iterator[_Work]:  # noqa: ANN401
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("highest")  # the shares are of CUDA cores
    try:
        for rows, width in ((16, 16), (64, 16), (64, 64)):
            m, n = rows * scale, width * scale
            a, b = torch.randn(m, n, device=device), torch.randn(n, n, device=device)
            yield _Work("gemm", 2.0 * m * n * n, 2 * m * n + n * n, partial(torch.mm, a, b))
        for length, width in ((8, 1), (16, 1), (16, 2)):
            m, k, batch = length * scale, width * scale, scale
            a, b = (torch.randn(batch, *s, device=device) for s in ((m, k), (k, m)))
            elements = batch * (2 * m * k + m * m)
            yield _Work("bmm", 2.0 * batch * m * m * k, elements, partial(torch.bmm, a, b))
    finally:
        torch.set_float32_matmul_precision(before)


def _streams(torch: Any, device: str, scale: int) -> Iterator[_Work]:  # noqa: ANN401
    norm = torch.nn.functional.layer_norm
    for width in (8, 16, 64):
        x = torch.randn(128 * scale, width * scale, device=device)
        size = x.numel()
        yield _Work("softmax", 0.0, 2 * size, partial(torch.softmax, x, -1))
        yield _Work("norm", 0.0, 2 * size, partial(norm, x, x.shape[-1:]))
        yield _Work("pointwise", 0.0, 3 * size, partial(torch.add, x, x.clone()))
        yield _Work("pointwise", 0.0, 2 * size, partial(torch.tanh, x))


def _attention(torch: Any, device: str, scale: int) -> Iterator[_Work]:  # noqa: ANN401
    attend = torch.nn.functional.scaled_dot_product_attention
    for length, width in ((16, 1), (32, 1), (32, 2)):
        tokens, head, batch = length * scale, width * scale, 32
        q, k, v = (
            torch.randn(1, batch, tokens, head, device=device, dtype=torch.float16)
            for _ in range(3)
        )
        flops, elements = 4.0 * batch * tokens * tokens * head, 4 * batch * tokens * head
        yield _Work("attention", flops, elements, partial(attend, q, k, v), "float16")
