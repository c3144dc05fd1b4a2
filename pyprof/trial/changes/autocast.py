"""Autocast around the calls of outermost modules; their backward passes follow by themselves."""

from __future__ import annotations

from contextlib import contextmanager
from itertools import chain
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

from pyprof.trial.change import RefusedError, WhyNoEffect, change
from pyprof.trial.script.run import Run  # noqa: TC001 - a change's signature

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_MANY_SKIPPED = 4
"""Steps; a new GradScaler skips a few until its scale fits."""
_ALREADY = "the script has autocast already"
_CODE = "with torch.autocast(device, torch.{}):\n    loss = criterion(model(inputs), labels)"


@change("bf16", code=_CODE.format("bfloat16"), advised_by=("half_precision",))
def bf16(run: Run) -> WhyNoEffect:
    """Compute products in bfloat16 (autocast)."""
    return _autocast(run, "bfloat16")


@change("fp16", code=_CODE.format("float16") + "\nscaler.scale(loss).backward()")
def fp16(run: Run) -> WhyNoEffect:
    """Compute products in float16 (autocast), in a script that has a GradScaler."""
    import torch  # noqa: PLC0415 - the user's own

    scalers: list[Any] = []
    scales: list[Any] = []
    create, update = torch.amp.GradScaler.__init__, torch.amp.GradScaler.update

    def note_scaler(scaler: Any, *args: Any, **kwargs: Any) -> None:  # noqa: ANN401 - torch's
        create(scaler, *args, **kwargs)
        scalers.append(scaler)

    def note_scale(scaler: Any, *args: Any, **kwargs: Any) -> None:  # noqa: ANN401 - torch's
        # a disabled scaler lacks it; reading the public one would wait for the GPU
        before = getattr(scaler, "_scale", None)
        kept = None if before is None else before.clone()
        update(scaler, *args, **kwargs)
        if kept is not None:
            scales.append((kept, scaler._scale.clone()))  # noqa: SLF001 - as above

    torch.amp.GradScaler.__init__ = note_scaler  # type: ignore[method-assign,assignment]
    torch.amp.GradScaler.update = note_scale  # type: ignore[method-assign,assignment]

    def check(module: Any) -> None:  # noqa: ANN401 - a module
        scaled = any(scaler.is_enabled() for scaler in scalers)
        if module.training and torch.is_grad_enabled() and not scaled:
            run.refuse("the script has no GradScaler, without which gradients underflow")

    run.calls.on_loop(check)
    why_no_effect = _autocast(run, "float16")

    def end() -> str | None:
        _say_overflows(run, scales)
        return why_no_effect()

    return end


def _say_overflows(run: Run, scales: Sequence[tuple[Any, Any]]) -> None:
    """Report steps that a GradScaler skipped, by its scales before and after; fail if most were."""
    skipped = sum(bool(after < before) for before, after in scales)
    if not skipped:
        return
    text = (
        f"float16 overflows: gradients were not finite in {skipped} of {len(scales)} steps, which "
        f"the GradScaler skipped; its scale fell from {float(scales[0][0]):g} to "
        f"{float(scales[-1][1]):g}"
    )
    if skipped >= _MANY_SKIPPED and skipped > len(scales) / 2:
        run.fail(text)
    else:
        run.note(text)


def _autocast(run: Run, name: str) -> WhyNoEffect:
    import torch  # noqa: PLC0415 - the user's own
    from torch.utils._pytree import tree_map  # noqa: PLC0415 - as above

    if name == "bfloat16" and torch.cuda.is_available() and not torch.cuda.is_bf16_supported():
        raise RefusedError("this GPU has no bfloat16")
    dtype = getattr(torch, name)
    seen: WeakSet[Any] = WeakSet()
    weights: set[Any] = set()
    inside: list[None] = []

    @contextmanager
    def enter(call: Any) -> Iterator[None]:  # noqa: ANN401 - the call of a module
        placed = (value for value in call.args if hasattr(value, "device"))
        tensor = next(chain(call.module.parameters(), placed), None)
        device = "cpu" if tensor is None else str(tensor.device.type)
        if torch.is_autocast_enabled(device):
            run.refuse(_ALREADY)
        if call.module not in seen:
            seen.add(call.module)
            weights.update(each.dtype for each in call.module.parameters())
        with torch.autocast(device, dtype):
            inside.append(None)
            try:
                yield
            finally:
                inside.pop()

    def as_before(value: Any) -> Any:  # noqa: ANN401 - any output
        half = isinstance(value, torch.Tensor) and value.dtype == dtype
        return value.float() if half else value

    _refuse_inside(run, inside)
    run.calls.around.append(enter)
    run.calls.after.append(lambda _, output: tree_map(as_before, output))
    return lambda: _why_no_effect(weights, dtype)


def _why_no_effect(weights: set[Any], dtype: Any) -> str | None:  # noqa: ANN401 - torch's types
    import torch  # noqa: PLC0415 - the user's own

    if not weights:
        return "no module with weights was called"
    if weights - {torch.float64, dtype}:
        return None
    return f"autocast leaves weights of {' and '.join(sorted(map(str, weights)))} as they are"


def _refuse_inside(run: Run, inside: Sequence[None]) -> None:
    """Refuse the change if the script switches autocast on inside ours."""
    import torch  # noqa: PLC0415 - the user's own

    begin: Any = torch.autocast.__enter__

    def enter(autocast: Any) -> Any:  # noqa: ANN401 - torch's
        if inside and autocast._enabled:  # noqa: SLF001 - torch's
            run.refuse(_ALREADY)
        return begin(autocast)

    torch.autocast.__enter__ = enter  # type: ignore[method-assign]
