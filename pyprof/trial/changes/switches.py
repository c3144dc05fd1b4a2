"""Switches of torch: TF32 in products, and cuDNN's search for the fastest convolution."""

from __future__ import annotations

from pyprof.trial.change import RefusedError, WhyNoEffect, change
from pyprof.trial.script.run import Run  # noqa: TC001 - a change's signature

_AMPERE = (8, 0)


@change(
    "tf32",
    code='torch.set_float32_matmul_precision("high")\ntorch.backends.cudnn.allow_tf32 = True',
    advised_by=("tf32",),
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

    def refuse(_: str) -> None:
        run.refuse("the script sets the precision of float32 products itself")

    torch.set_float32_matmul_precision = refuse  # type: ignore[assignment]
    torch.backends.cudnn.allow_tf32 = True

    def why_no_effect() -> str | None:
        kept = torch.get_float32_matmul_precision() != "highest"
        return None if kept else "the script sets the precision of float32 products itself"

    return why_no_effect


@change("cudnn-benchmark", code="torch.backends.cudnn.benchmark = True")
def cudnn_benchmark(run: Run) -> WhyNoEffect:
    """Let cuDNN try its algorithms and take the fastest."""
    import torch  # noqa: PLC0415 - the user's own

    del run
    if not torch.cuda.is_available():
        raise RefusedError("there is no GPU with cuDNN here")
    torch.backends.cudnn.benchmark = True

    def why_no_effect() -> str | None:
        return None if torch.backends.cudnn.benchmark else "the script switches it off itself"

    return why_no_effect
