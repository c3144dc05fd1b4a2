"""A range around each optimizer's `step`, including apex's and the user's own.

torch itself replaces `step` of a class when its first instance is built (for its own profiler and
hooks). We wrap right after it, so that restoring leaves torch's replacement.
"""

from __future__ import annotations

from functools import wraps
from typing import TYPE_CHECKING, Any

import torch
from torch.optim import Optimizer

from pyprof.instrument.ops.caller import hide_frames
from pyprof.instrument.ops.op import BindingOp, call_packed, is_disabled
from pyprof.instrument.ops.patch import subclasses
from pyprof.instrument.ranges.open_ranges import close_range, open_range
from pyprof.marker import CLOSURE, STEP_OF

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyprof.instrument.ops.patch import Patches


def wrap_optimizers(patches: Patches) -> None:
    """Wrap `step` of every class that has instances, and of others once they have."""
    for kind in subclasses(Optimizer):
        _wrap_step(kind, patches)
    patch_step: Any = Optimizer._patch_step_function  # noqa: SLF001 - called once per new optimizer

    def patch_and_wrap(self: Optimizer) -> None:
        patch_step(self)
        for kind in type(self).__mro__:
            if issubclass(kind, Optimizer):
                _wrap_step(kind, patches)

    patches.replace(Optimizer, "_patch_step_function", patch_and_wrap)


def _wrap_step(kind: type, patches: Patches) -> None:
    """Wrap a class's step under the class's own name, even if inherited: AdamW has Adam's."""
    if _is_ours(vars(kind).get("step")):
        return
    step: Any = getattr(kind, "step", None)
    step = step.__wrapped__ if _is_ours(step) else step
    if getattr(step, "hooked", False):
        op = StepOp(step, kind, "step", kind.__name__, overridable="never")

        @wraps(step)
        @hide_frames
        def call(*args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - as the original
            # a function: torch.compile would call another descriptor without the optimizer
            if torch.compiler.is_dynamo_compiling():
                return step(*args, **kwargs)
            return op(*args, **kwargs)

        setattr(call, _WRAPPER, call)
        patches.replace(kind, "step", call)


_WRAPPER = "pyprof_wrapper"


def _is_ours(step: Callable[..., Any] | None) -> bool:
    """Whether it is our wrapper, not a step of the user's to which `wraps` copied attributes."""
    return step is not None and getattr(step, _WRAPPER, None) is step


class StepOp(BindingOp):
    """An optimizer's step. With a closure it is not an op: forward and backward run inside it.

    Lightning always passes one, and so do users of LBFGS. Ops inside the closure are then forward
    and backward, all others the optimizer's.
    """

    @hide_frames
    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - as the original
        """Call the original, inside its ranges while anyone listens."""
        closure = kwargs.get("closure", args[1] if len(args) > 1 else None)
        if not callable(closure) or is_disabled():
            return call_packed(self)(args, kwargs)
        marked = _mark_closure(closure)
        if "closure" in kwargs:
            kwargs["closure"] = marked
        else:
            args = (args[0], marked, *args[2:])
        opened = open_range(f"{STEP_OF}{type(args[0]).__name__}.step")
        try:
            return self.__wrapped__(*args, **kwargs)
        finally:
            close_range(opened)


def _mark_closure(closure: Callable[..., Any]) -> Callable[..., Any]:
    @hide_frames
    def run(*args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - as the closure
        opened = open_range(CLOSURE)
        try:
            return closure(*args, **kwargs)
        finally:
            close_range(opened)

    return wraps(closure)(run)
