"""A range around each `step` of any optimizer, apex's and the user's own included.

torch itself replaces `step` of a class when its first instance is built (for its own profiler and
hooks). So do we, right after it: what is put back later is what torch had put there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from torch.optim import Optimizer

from pyprof.instrument.op import isinstance_op, make_op

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyprof.instrument.patch import Patches


def wrap_optimizers(patches: Patches) -> None:
    """Wrap `step` of every class of which there are instances, and of others when there are."""
    for kind in _subclasses(Optimizer):
        _wrap_step(kind, patches)
    patch_step: Any = Optimizer._patch_step_function  # noqa: SLF001 - called once per new optimizer

    def patch_and_wrap(self: Optimizer) -> None:
        patch_step(self)
        for kind in type(self).__mro__:
            if issubclass(kind, Optimizer):
                _wrap_step(kind, patches)

    patches.replace(Optimizer, "_patch_step_function", patch_and_wrap)


def _wrap_step(kind: type, patches: Patches) -> None:
    """Wrap a class's step under the class's own name, be it inherited: AdamW has that of Adam."""
    if isinstance_op(vars(kind).get("step")):
        return
    step: Any = getattr(kind, "step", None)
    if isinstance_op(step):
        step = step.__wrapped__
    if getattr(step, "hooked", False):
        patches.replace(kind, "step", make_op(step, kind, "step", kind.__name__))


def _subclasses(kind: type) -> Iterator[type]:
    below: type
    for below in kind.__subclasses__():
        yield below
        yield from _subclasses(below)
