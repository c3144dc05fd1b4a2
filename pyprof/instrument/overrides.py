"""Who else has a say in a call of an op: tensor subclasses, modes, and torch's own tracers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch.overrides import _get_overloaded_args

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

_get_mode = torch._C._get_dispatch_mode  # noqa: SLF001 - no public way
_TRACERS = tuple(
    getattr(torch._C._TorchDispatchModeKey, name)  # noqa: SLF001 - as above
    for name in ("FAKE", "PROXY", "FUNCTIONAL")
)
_DEFAULT = torch.Tensor.__torch_function__.__func__  # type: ignore[attr-defined]


def tracing_modes() -> bool:
    """Tell whether torch only pretends to run: fake tensors, make_fx, export, compilation.

    No work is launched then, and asking for a symbolic size would fix it.
    """
    return any(_get_mode(key) is not None for key in _TRACERS)


def relevant(args: Sequence[Any], kwargs: Mapping[str, Any]) -> tuple[Any, ...]:
    """Give the arguments that may have a say, in order."""
    return tuple(_flat((*args, *kwargs.values())))


def _flat(values: Sequence[Any]) -> Iterator[Any]:
    for value in values:
        if type(value) in (list, tuple):
            yield from (item for item in value if hasattr(type(item), "__torch_function__"))
        elif hasattr(type(value), "__torch_function__"):
            yield value


def come_back(arguments: Sequence[Any]) -> bool:
    """Tell whether the op will be called once more, so that its range need not open yet.

    That is what `torch.Tensor.__torch_function__` does, which most subclasses inherit, and what
    a mode does when it lets an op pass.
    """
    return all(
        getattr(type(value).__torch_function__, "__func__", None) is _DEFAULT
        for value in _get_overloaded_args(arguments)
    )
