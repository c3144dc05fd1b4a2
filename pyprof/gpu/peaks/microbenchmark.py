"""Measure what this machine reaches: a square matmul in each type, and a large copy. Needs torch.

The best of many runs, not their mean: a ceiling is what the machine can do. Compare with the
datasheet to see throttling, power limits and a library's overhead.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, TypeAlias

from pyprof.errors import PyprofError
from pyprof.gpu.kernel_dtypes import tensor_core_takes
from pyprof.gpu.peaks.ceilings import Ceilings

if TYPE_CHECKING:
    from collections.abc import Callable

    Clock: TypeAlias = Callable[[Callable[[], object]], float]

GPU_SIDE, CPU_SIDE = 8192, 1024
"""Sides of the matmul: large enough to fill the device, small enough for its memory."""
GPU_COPY_BYTES, CPU_COPY_BYTES = 1 << 30, 1 << 28
"""Far beyond any cache."""
BUDGET_S = 0.5
"""Time for one figure."""

_GPU_TYPES = ("float64", "float32", "tf32", "float16", "bfloat16")
_CPU_TYPES = ("float64", "float32", "bfloat16")


def measure(
    device: str,
    *,
    side: int | None = None,
    copy_bytes: int | None = None,
    budget_s: float = BUDGET_S,
) -> Ceilings:
    """Measure `cpu`, `cuda` or `cuda:N`; a type that the device lacks has no figure.

    Raises PyprofError without torch or without the device, and if its memory is full.
    """
    torch = load_torch()
    on_gpu = device.startswith("cuda")
    if on_gpu and not torch.cuda.is_available():
        raise PyprofError(
            "torch sees no CUDA device: use --measure cpu, or install a CUDA build of torch"
        )
    if on_gpu and (torch.device(device).index or 0) >= torch.cuda.device_count():
        count = torch.cuda.device_count()
        raise PyprofError(f"no device {device}: torch sees {count} CUDA devices")
    name, cc, is_amd = _identity(torch, device)
    clock = gpu_clock(torch, device) if on_gpu else _cpu_clock
    length = side or (GPU_SIDE if on_gpu else CPU_SIDE)
    size = copy_bytes or (GPU_COPY_BYTES if on_gpu else CPU_COPY_BYTES)
    flops = {}
    try:
        for kind in _GPU_TYPES if on_gpu else _CPU_TYPES:
            if kind == "tf32" and (cc is None or not tensor_core_takes(cc, kind)):
                continue
            if (rate := _matmul(torch, device, kind, length, clock, budget_s)) is not None:
                flops[_key(kind, cc, is_amd=is_amd)] = rate
        source = torch.zeros(size, dtype=torch.uint8, device=device)
        target = torch.empty_like(source)
        seconds = best_s(lambda: target.copy_(source), clock, budget_s)
        return Ceilings(name, flops, 2 * size / seconds)  # each byte is read and written
    except torch.cuda.OutOfMemoryError as error:
        raise PyprofError(
            f"{device} has too little free memory: end other programs that use it"
        ) from error


def pick() -> str:
    """Choose what to measure by default: the GPU if torch sees one, else the CPU.

    Raises PyprofError without torch.
    """
    return "cuda" if load_torch().cuda.is_available() else "cpu"


def load_torch() -> Any:  # noqa: ANN401 - a module that may be absent
    """Return torch; raises PyprofError without it."""
    try:
        import torch  # noqa: PLC0415 - reading and reporting never load it
    except ImportError as error:
        raise PyprofError("measuring needs torch: pip install torch") from error
    return torch


def _identity(torch: Any, device: str) -> tuple[str, tuple[int, int] | None, bool]:  # noqa: ANN401
    """Return the device's name, its CUDA compute capability, and whether it is AMD's."""
    if not device.startswith("cuda"):
        return "cpu", None, False
    properties = torch.cuda.get_device_properties(torch.device(device))
    if torch.version.hip:
        return properties.name, None, True
    return properties.name, (properties.major, properties.minor), False


def _key(kind: str, cc: tuple[int, int] | None, *, is_amd: bool = False) -> str:
    """Return the key of `card_table` for a figure: by the units that torch's matmul runs on.

    AMD's matrix cores take every type, NVIDIA's Tensor Cores depend on the compute capability.
    """
    if is_amd or (cc is not None and tensor_core_takes(cc, kind)):
        return f"{kind} tensor"
    return kind


def _cpu_clock(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def gpu_clock(torch: Any, device: str) -> Clock:  # noqa: ANN401
    """Time by events on the stream: the host's launch is not the device's work."""

    def clock(work: Callable[[], object]) -> float:
        with torch.cuda.device(torch.device(device)):
            start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            start.record()
            work()
            end.record()
            end.synchronize()
            return float(start.elapsed_time(end)) / 1000  # ms

    return clock


def best_s(work: Callable[[], object], clock: Clock, budget_s: float) -> float:
    """Return the shortest of the runs that fit the budget, after one that warms up."""
    clock(work)
    best = clock(work)
    until = time.perf_counter() + budget_s
    while time.perf_counter() < until:
        best = min(best, clock(work))
    return best


def _matmul(
    torch: Any,  # noqa: ANN401
    device: str,
    kind: str,
    side: int,
    clock: Clock,
    budget_s: float,
) -> float | None:
    """Return FLOP/s of a square product, 2 * side**3 a run; None if the type is refused."""
    dtype = torch.float32 if kind == "tf32" else getattr(torch, kind)
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("high" if kind == "tf32" else "highest")
    try:
        a = torch.randn(side, side, device=device).to(dtype)
        out = torch.empty_like(a)
        seconds = best_s(lambda: torch.mm(a, a, out=out), clock, budget_s)
    except torch.cuda.OutOfMemoryError:  # a RuntimeError too, but no refusal of the type
        raise
    except (RuntimeError, TypeError):
        return None
    finally:
        torch.set_float32_matmul_precision(before)
    return 2 * side**3 / seconds if seconds > 0 else None
