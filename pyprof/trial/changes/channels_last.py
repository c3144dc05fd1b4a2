"""The layout of images and convolutions with channels last."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyprof.trial.change import WhyNoEffect, change
from pyprof.trial.script.run import Run  # noqa: TC001 - a change's signature

if TYPE_CHECKING:
    from collections.abc import Callable

_IMAGES, _VOLUMES = 4, 5
"""Numbers of dimensions."""


@change(
    "channels-last",
    code="model = model.to(memory_format=torch.channels_last)  # of a Conv3d: channels_last_3d\n"
    "inputs = inputs.to(memory_format=torch.channels_last)",
    advised_by=("channels_last",),
)
def channels_last(run: Run) -> WhyNoEffect:
    """Store images and convolutions with channels last."""
    import torch  # noqa: PLC0415 - the user's own
    from torch.utils._pytree import tree_map  # noqa: PLC0415 - as above
    from torch.utils.weak import WeakIdKeyDictionary  # noqa: PLC0415 - as above

    formats = {_IMAGES: torch.channels_last, _VOLUMES: torch.channels_last_3d}
    converted: Any = WeakIdKeyDictionary()
    match_states = _match_states()

    def begin(module: Any) -> None:  # noqa: ANN401 - a module
        convolutions = _convolutions(module)
        if _are_last(convolutions, formats):
            run.refuse("the script stores convolutions with channels last already")
        for convolution, dim in convolutions.items():  # one format fits no other dimensions
            convolution.to(memory_format=formats[dim])
        if convolutions:
            converted[module] = set(convolutions.values())
            match_states()

    def convert(call: Any) -> None:  # noqa: ANN401 - the call of a module
        dims = converted.get(call.module)
        if not dims:
            return

        def in_format(value: Any) -> Any:  # noqa: ANN401 - any argument
            if isinstance(value, torch.Tensor) and value.dim() in dims:
                return value.contiguous(memory_format=formats[value.dim()])
            return value

        call.args, call.kwargs = tree_map(in_format, (call.args, call.kwargs))

    run.calls.on_loop(begin)
    run.calls.before.append(convert)
    return lambda: None if len(converted) else "no convolution: no called module has one"


def _convolutions(module: Any) -> dict[Any, int]:  # noqa: ANN401 - a module
    """Return the convolutions in it, with their weights' numbers of dimensions."""
    import torch  # noqa: PLC0415 - the user's own

    kinds = {
        _IMAGES: (torch.nn.Conv2d, torch.nn.ConvTranspose2d),
        _VOLUMES: (torch.nn.Conv3d, torch.nn.ConvTranspose3d),
    }
    return {
        each: dim
        for dim, kind in kinds.items()
        for each in module.modules()
        if isinstance(each, kind)
    }


def _are_last(convolutions: dict[Any, int], formats: dict[int, Any]) -> bool:
    """Whether channels are last in all weights whose strides show it; False if none do."""
    layouts = [
        (each.weight.is_contiguous(), each.weight.is_contiguous(memory_format=formats[dim]))
        for each, dim in convolutions.items()
    ]
    telling = [last for first, last in layouts if first != last]
    return bool(telling) and all(telling)


def _match_states() -> Callable[[], None]:
    """Return a function that has optimizers match state to parameters before their next steps."""
    from torch.optim.optimizer import register_optimizer_step_pre_hook  # noqa: PLC0415 - the user's own
    from torch.utils.weak import WeakIdKeyDictionary  # noqa: PLC0415 - as above

    matched: Any = WeakIdKeyDictionary()

    def match(optimizer: Any, *_: object) -> None:  # noqa: ANN401 - torch's
        if optimizer not in matched:
            matched[optimizer] = None
            _match_state(optimizer)

    register_optimizer_step_pre_hook(match)
    forget: Callable[[], None] = matched.clear
    return forget


def _match_state(optimizer: Any) -> None:  # noqa: ANN401 - torch's
    """Store the optimizer's state of each parameter in the layout of the parameter.

    Fused kernels take elements in the order of memory, and would mix them up otherwise.
    """
    import torch  # noqa: PLC0415 - the user's own

    for parameter, state in optimizer.state.items():
        for key, value in state.items():
            if not isinstance(value, torch.Tensor) or value.shape != parameter.shape:
                continue
            if value.stride() != parameter.stride():
                state[key] = torch.empty_like(parameter, dtype=value.dtype).copy_(value)
