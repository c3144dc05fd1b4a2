"""Autocast around the calls of outermost modules; their backward passes follow by themselves."""

from __future__ import annotations

from typing import Any

from pyprof.trial.change import RefusedError, WhyNoEffect, change
from pyprof.trial.script.run import Run  # noqa: TC001 - a change's signature

_CODE = "with torch.autocast(device, torch.{}):\n    loss = criterion(model(inputs), labels)"


@change("bf16", code=_CODE.format("bfloat16"), advised_by=("half_precision",))
def bf16(run: Run) -> WhyNoEffect:
    """Compute products in bfloat16 (autocast)."""
    return _autocast(run, "bfloat16")


@change("fp16", code=_CODE.format("float16") + "\nscaler.scale(loss).backward()")
def fp16(run: Run) -> WhyNoEffect:
    """Compute products in float16 (autocast), in a script that has a GradScaler."""
    import torch  # noqa: PLC0415 - the user's own

    scalers: list[None] = []
    create = torch.amp.GradScaler.__init__

    def note_scaler(scaler: Any, *args: Any, **kwargs: Any) -> None:  # noqa: ANN401 - torch's
        scalers.append(None)
        create(scaler, *args, **kwargs)

    torch.amp.GradScaler.__init__ = note_scaler  # type: ignore[method-assign,assignment]

    def check(module: Any) -> None:  # noqa: ANN401 - a module
        if module.training and torch.is_grad_enabled() and not scalers:
            run.refuse("the script has no GradScaler, without which gradients underflow")

    run.on_loop(check)
    return _autocast(run, "float16")


def _autocast(run: Run, name: str) -> WhyNoEffect:
    import torch  # noqa: PLC0415 - the user's own
    from torch.utils._pytree import tree_map  # noqa: PLC0415 - as above

    if name == "bfloat16" and torch.cuda.is_available() and not torch.cuda.is_bf16_supported():
        raise RefusedError("this GPU has no bfloat16")
    dtype = getattr(torch, name)
    called: list[None] = []

    def enter(call: Any) -> Any:  # noqa: ANN401 - the call of a module
        device = _device(call)
        if torch.is_autocast_enabled(device):
            run.refuse("the script has autocast already")
        called.append(None)
        return torch.autocast(device, dtype)

    def as_before(value: Any) -> Any:  # noqa: ANN401 - any output
        half = isinstance(value, torch.Tensor) and value.dtype == dtype
        return value.float() if half else value

    run.calls.around.append(enter)
    run.calls.after.append(lambda _, output: tree_map(as_before, output))
    return lambda: None if called else "no module was called"


def _device(call: Any) -> str:  # noqa: ANN401 - the call of a module
    parameter = next(call.module.parameters(), None)
    tensors = [parameter] if parameter is not None else []
    tensors += [value for value in call.args if hasattr(value, "device")]
    return str(tensors[0].device.type) if tensors else "cpu"
