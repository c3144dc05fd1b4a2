"""Accidental float64: from NumPy arrays and Python literals, in a float32 program."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from pyprof.trial.change import WhyNoEffect, change
from pyprof.trial.script.run import Run  # noqa: TC001 - a change's signature

if TYPE_CHECKING:
    from collections.abc import Callable

_ALL = "all"


def _value(text: str) -> None:
    if text not in ("", _ALL):
        raise ValueError("write float32, or float32=all to undo .double() as well")


def _code(value: str) -> str:
    of_numpy = "torch.from_numpy(array.astype(np.float32))"
    return f"model.float()  # in place of .double()\n{of_numpy}" if value == _ALL else of_numpy


@change(
    "float32",
    takes="all",
    default="",
    proposed=_ALL,
    check=_value,
    code=_code,
    advised_by=("double_precision",),
)
def float32(run: Run) -> WhyNoEffect:
    """Make float32 of float64 that came from NumPy; with =all, of .double(), too."""
    import torch  # noqa: PLC0415 - the user's own

    changed: list[None] = []

    def single(tensor: Any) -> Any:  # noqa: ANN401 - a tensor
        if tensor.dtype != torch.float64:
            return tensor
        changed.append(None)
        return tensor.detach().float().requires_grad_(tensor.requires_grad)

    def asked_for() -> None:
        if run.value != _ALL:
            run.refuse(f"the script asks for float64 by name at {_caller()}; try float32=all")
        run.note(f"float64 is asked for by name at {_caller()}")
        changed.append(None)

    _convert_unnamed(single)
    _replace_named(asked_for)
    return lambda: None if changed else "no float64 came from NumPy or a literal"


def _convert_unnamed(single: Callable[[Any], Any]) -> None:
    """Pass tensors through `single` that are made of arrays and literals without a dtype."""
    import torch  # noqa: PLC0415 - the user's own

    def replace(name: str) -> None:
        make = getattr(torch, name)

        def made(data: Any, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - torch's
            tensor = make(data, *args, **kwargs)
            named = args or kwargs.get("dtype") is not None or isinstance(data, torch.Tensor)
            return tensor if named else single(tensor)

        setattr(torch, name, made)

    for name in ("from_numpy", "tensor", "as_tensor"):
        replace(name)


def _replace_named(asked_for: Callable[[], object]) -> None:
    """Call `asked_for` where the script asks for float64 by name, and use float32 instead."""
    import torch  # noqa: PLC0415 - the user's own

    move, set_default = torch.nn.Module.to, torch.set_default_dtype

    def as_single(thing: Any, *_: Any, **__: Any) -> Any:  # noqa: ANN401 - a tensor or module
        asked_for()
        return thing.float()

    def narrowed(value: Any) -> Any:  # noqa: ANN401 - any argument
        if value is not torch.float64:
            return value
        asked_for()
        return torch.float32

    def to(module: Any, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - torch's
        named = {key: narrowed(value) for key, value in kwargs.items()}
        return move(module, *map(narrowed, args), **named)

    torch.set_default_dtype = lambda dtype: set_default(narrowed(dtype))
    torch.nn.Module.to = to  # type: ignore[method-assign,assignment]
    torch.nn.Module.double = as_single  # type: ignore[method-assign,assignment]
    torch.Tensor.double = as_single  # type: ignore[method-assign,assignment]


def _caller() -> str:
    """Return the file and line outside of this file that called into it."""
    frame = sys._getframe(1)  # noqa: SLF001 - the line that asked for float64
    while frame.f_code.co_filename == __file__ and frame.f_back is not None:
        frame = frame.f_back
    return f"{frame.f_code.co_filename}:{frame.f_lineno}"
