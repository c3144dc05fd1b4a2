"""Float64 that nobody asked for: of NumPy arrays and Python literals beside float32."""

from __future__ import annotations

import sys
from typing import Any

from pyprof.trial.change import WhyNoEffect, change
from pyprof.trial.script.run import Run  # noqa: TC001 - a change's signature

_ALL = "all"


def _value(text: str) -> None:
    if text not in ("", _ALL):
        raise ValueError("write float32, or float32=all to undo .double() as well")


@change(
    "float32",
    takes="all",
    default="",
    check=_value,
    code="torch.from_numpy(array.astype(np.float32))",
    advised_by=("double_precision",),
)
def float32(run: Run) -> WhyNoEffect:
    """Make float32 of float64 that came from NumPy; with =all, of .double(), too."""
    import torch  # noqa: PLC0415 - the user's own

    changed: list[None] = []
    everything = run.value == _ALL

    def single(tensor: Any) -> Any:  # noqa: ANN401 - a tensor
        if tensor.dtype != torch.float64:
            return tensor
        changed.append(None)
        return tensor.float()

    def replace(name: str) -> None:
        make = getattr(torch, name)

        def made(data: Any, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - torch's
            tensor = make(data, *args, **kwargs)
            named = args or kwargs.get("dtype") is not None or isinstance(data, torch.Tensor)
            return tensor if named else single(tensor)

        setattr(torch, name, made)

    for name in ("from_numpy", "tensor", "as_tensor"):
        replace(name)

    def as_single(thing: Any, *_: Any, **__: Any) -> Any:  # noqa: ANN401 - a tensor or module
        if not everything:
            run.refuse(f"the script asks for float64 by name at {_caller()}; try float32=all")
        changed.append(None)
        return thing.float()

    torch.Tensor.double = as_single  # type: ignore[method-assign,assignment]
    torch.nn.Module.double = as_single  # type: ignore[method-assign,assignment]
    return lambda: None if changed else "no float64 came from NumPy or a literal"


def _caller() -> str:
    frame = sys._getframe(2)  # noqa: SLF001 - the line that called .double()
    return f"{frame.f_code.co_filename}:{frame.f_lineno}"
