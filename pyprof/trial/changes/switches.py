"""Settings of torch: TF32 in products, cuDNN's search for the fastest convolution, threads."""

from __future__ import annotations

from typing import Any

from pyprof.trial.change import RefusedError, WhyNoEffect, change, whole_number
from pyprof.trial.script.run import Run  # noqa: TC001 - a change's signature

_AMPERE = (8, 0)
_PRECISION = ("allow_tf32", "fp32_precision")
"""Attributes that set the precision of float32 products."""


@change(
    "tf32",
    code='torch.set_float32_matmul_precision("high")\ntorch.backends.cudnn.allow_tf32 = True',
    advised_by=("tf32",),
    predicted_by="--dtype tf32",
)
def tf32(run: Run) -> WhyNoEffect:
    """Compute float32 products in TF32, on GPUs from Ampere on."""
    import torch  # noqa: PLC0415 - the user's own

    if not torch.cuda.is_available():
        raise RefusedError("there is no GPU with TF32 here")
    if torch.cuda.get_device_capability() < _AMPERE:
        raise RefusedError(f"{torch.cuda.get_device_name()} has no TF32")
    set_precision = torch.set_float32_matmul_precision
    set_precision("high")

    torch.backends.cudnn.allow_tf32 = True

    def refuse(_: str) -> None:
        run.refuse("the script sets the precision of float32 products itself")

    torch.set_float32_matmul_precision = refuse  # type: ignore[assignment]
    products = type(torch.backends.cuda.matmul)
    set_attribute: Any = products.__setattr__

    def set_or_refuse(matmul: Any, name: str, value: Any) -> None:  # noqa: ANN401 - torch's
        if name in _PRECISION:
            refuse(name)
        set_attribute(matmul, name, value)

    products.__setattr__ = set_or_refuse  # type: ignore[method-assign]
    return lambda: None


@change("cudnn-benchmark", code="torch.backends.cudnn.benchmark = True")
def cudnn_benchmark(run: Run) -> WhyNoEffect:
    """Let cuDNN try its algorithms and take the fastest."""
    import torch  # noqa: PLC0415 - the user's own

    if not torch.cuda.is_available():
        raise RefusedError("there is no GPU with cuDNN here")
    torch.backends.cudnn.benchmark = True
    cudnn: Any = type(torch.backends.cudnn)
    switch: Any = vars(cudnn)["benchmark"]

    def refuse(*_: object) -> None:
        run.refuse("the script sets it itself")

    cudnn.benchmark = property(lambda _: switch.__get__(None, cudnn), refuse)
    return lambda: None


@change("threads", takes="N", check=whole_number, code="torch.set_num_threads({value})")
def threads(run: Run) -> WhyNoEffect:
    """Let torch use N threads on a CPU."""
    import torch  # noqa: PLC0415 - the user's own

    wanted, before = int(run.value), torch.get_num_threads()
    if wanted == before:
        raise RefusedError(f"torch uses {before} threads already")
    torch.set_num_threads(wanted)

    def why_no_effect() -> str | None:
        now = torch.get_num_threads()
        return None if now == wanted else f"the script sets {now} threads itself"

    return why_no_effect
