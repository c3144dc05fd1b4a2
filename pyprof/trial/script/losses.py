"""Losses: each scalar whose backward pass is started, kept on its device and read at the end."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

_MAX_LOSSES = 10_000
_UNSCALED = "_pyprof_unscaled_loss"
"""Attribute of a scaled loss: the loss before a GradScaler scaled it."""


class Losses:
    """The losses of a run, in the order of their backward passes."""

    def __init__(self, started: Callable[[], object]) -> None:
        self._kept: list[Any] = []
        self._started = started

    def install(self) -> None:
        """Replace `torch.autograd.backward`, which `Tensor.backward` calls."""
        import torch  # noqa: PLC0415 - the user's own
        from torch.autograd.graph import GradientEdge  # noqa: PLC0415 - as above

        backward, scale = torch.autograd.backward, torch.amp.GradScaler.scale

        def keep_losses(tensors: Any, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - torch's
            self._started()
            if not isinstance(tensors, (torch.Tensor, GradientEdge)):
                tensors = tuple(tensors)
            for tensor in tensors if type(tensors) is tuple else (tensors,):
                if isinstance(tensor, torch.Tensor):
                    loss = getattr(tensor, _UNSCALED, tensor).detach()
                    if loss.numel() == 1 and len(self._kept) < _MAX_LOSSES:
                        self._kept.append(loss.clone())
            return backward(tensors, *args, **kwargs)

        def keep_unscaled(scaler: Any, outputs: Any) -> Any:  # noqa: ANN401 - as above
            scaled = scale(scaler, outputs)
            if isinstance(scaled, torch.Tensor) and scaled is not outputs:
                setattr(scaled, _UNSCALED, outputs.detach())
            return scaled

        torch.autograd.backward = keep_losses
        torch.amp.GradScaler.scale = keep_unscaled  # type: ignore[method-assign,assignment]

    def values(self) -> list[float]:
        """Return all losses; waits for the GPU."""
        return [float(loss) for loss in self._kept]
