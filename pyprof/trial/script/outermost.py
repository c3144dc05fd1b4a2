"""Calls of modules from outside any other module: of the model, a loss, the networks of a GAN.

`torch.nn.Module.__call__` is replaced before dynamo is imported, which then takes ours for torch's
own, and traces what is below it.
"""

from __future__ import annotations

import threading
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

    from torch.nn import Module

_LOOP_TRAINING, _LOOP_OTHERWISE = 2, 3
"""From which call of a module on, in training or otherwise, its loop has begun. Constructors call
modules once to learn sizes, and trainers check two batches of the validation set first."""


@dataclass
class Call:
    """A call of an outermost module, whose arguments may be replaced."""

    module: Module
    args: tuple[Any, ...]
    kwargs: dict[str, Any]


class OutermostCalls:
    """Functions to call before, around and after calls of outermost modules."""

    def __init__(self) -> None:
        self.before: list[Callable[[Call], object]] = []
        self.around: list[Callable[[Call], AbstractContextManager[Any]]] = []
        self.after: list[Callable[[Call, Any], Any]] = []
        """Each returns the output, or what replaces it."""

    def install(self) -> None:
        """Replace `Module.__call__`."""
        import torch  # noqa: PLC0415 - the user's own

        original = torch.nn.Module.__call__
        thread = threading.local()

        def call_module(module: Module, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - torch's
            if getattr(thread, "inside", False):
                return original(module, *args, **kwargs)
            thread.inside = True
            try:
                return self._perform(original, Call(module, args, kwargs))
            finally:
                thread.inside = False

        torch.nn.Module.__call__ = call_module  # type: ignore[method-assign]

    def _perform(self, original: Callable[..., Any], call: Call) -> Any:  # noqa: ANN401 - as above
        for prepare in self.before:
            prepare(call)
        with ExitStack() as stack:
            for enter in self.around:
                stack.enter_context(enter(call))
            output = original(call.module, *call.args, **call.kwargs)
        for replace in self.after:
            output = replace(call, output)
        return output

    def on_loop(self, act: Callable[[Module], object]) -> None:
        """Call `act` once for each outermost module with parameters, when its loop has begun."""
        import torch  # noqa: PLC0415 - the user's own

        counts: Any = torch.utils.weak.WeakIdKeyDictionary()

        def count(call: Call) -> None:
            module = call.module
            training, other, done = counts.get(module, (0, 0, False))
            if done:
                return
            if module.training and torch.is_grad_enabled():
                training += 1
            else:
                other += 1
            begun = training >= _LOOP_TRAINING or other >= _LOOP_OTHERWISE
            counts[module] = (training, other, begun)
            if begun and next(module.parameters(), None) is not None:
                act(module)

        self.before.append(count)
