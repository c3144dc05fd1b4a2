"""The layout of images and convolutions with channels last."""

from __future__ import annotations

from typing import Any

from pyprof.trial.change import WhyNoEffect, change
from pyprof.trial.script.run import Run  # noqa: TC001 - a change's signature

_IMAGES, _VOLUMES = 4, 5


@change(
    "channels-last",
    code="model = model.to(memory_format=torch.channels_last)\n"
    "inputs = inputs.to(memory_format=torch.channels_last)",
    advised_by=("channels_last",),
)
def channels_last(run: Run) -> WhyNoEffect:
    """Store images and convolutions with channels last."""
    import torch  # noqa: PLC0415 - the user's own
    from torch.utils._pytree import tree_map  # noqa: PLC0415 - as above
    from torch.utils.weak import WeakIdKeyDictionary  # noqa: PLC0415 - as above

    formats = {_IMAGES: torch.channels_last, _VOLUMES: torch.channels_last_3d}
    kinds = {torch.nn.Conv2d: _IMAGES, torch.nn.Conv3d: _VOLUMES}
    converted: Any = WeakIdKeyDictionary()

    def begin(module: Any) -> None:  # noqa: ANN401 - a module
        dims = {
            dim
            for kind, dim in kinds.items()
            for each in module.modules()
            if isinstance(each, kind)
        }
        for dim in dims:
            module.to(memory_format=formats[dim])
        if dims:
            converted[module] = dims

    def convert(call: Any) -> None:  # noqa: ANN401 - the call of a module
        dims = converted.get(call.module)
        if not dims:
            return

        def in_format(value: Any) -> Any:  # noqa: ANN401 - any argument
            if isinstance(value, torch.Tensor) and value.dim() in dims:
                return value.contiguous(memory_format=formats[value.dim()])
            return value

        call.args, call.kwargs = tree_map(in_format, (call.args, call.kwargs))

    run.on_loop(begin)
    run.before_calls(convert)
    return lambda: None if len(converted) else "no convolution: no called module has one"
