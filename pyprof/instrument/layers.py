"""A `layer:` range around each module's forward, with the module's full path.

In the place where torch calls any module, `Module.__call__`. Not by torch's global forward hooks:
with one of them in, `torch.export` (strict) refuses to trace, and a `KeyboardInterrupt` goes by
the hook that would close the range.
Recurrent modules get an op marker too: their work is one call that has no public name.
"""

from __future__ import annotations

import functools
import sys
from typing import TYPE_CHECKING, Any

import torch
from torch.nn import Module
from torch.nn.modules.rnn import RNNBase, RNNCellBase

from pyprof.instrument import ranges
from pyprof.instrument.emit import EMITTER
from pyprof.instrument.names import Names
from pyprof.instrument.op import WITH_STACK, untraceable
from pyprof.instrument.payload import op_head, op_text
from pyprof.instrument.stack import LANDMARKS, Landmark, trace_text
from pyprof.marker import encode_layer, encode_module

if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import FrameType

    from pyprof.instrument.patch import Patches


def wrap_modules(patches: Patches) -> None:
    """Put a range around the call of every module."""
    original = Module.__call__
    names = Names()

    @functools.wraps(original)
    def call(self: Module, /, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - as the module
        if torch.compiler.is_compiling() or not EMITTER.live() or untraceable():
            return original(self, *args, **kwargs)
        caller, prefix = _caller()
        name = names.name(self, caller, prefix)
        more: tuple[str, ...] = ()
        if isinstance(self, (RNNBase, RNNCellBase)):
            more = _recurrent(self, args, kwargs, sys._getframe(1))  # noqa: SLF001 - the cheap way
        outer = LANDMARKS.innermost
        landmark = Landmark(sys._getframe()) if WITH_STACK[0] else None  # noqa: SLF001 - as above
        opened = ranges.open_range(encode_layer(name.path), self, *more, prefix=name.prefix)
        try:
            LANDMARKS.innermost = landmark
            return original(self, *args, **kwargs)
        finally:
            LANDMARKS.innermost = outer
            if landmark is not None:
                landmark.frame = None
            ranges.close_range(opened)

    patches.replace(Module, "__call__", call)


def _caller() -> tuple[Module | None, str]:
    """Give the module whose forward runs on this thread, and what names inside it begin with."""
    for opened in reversed(ranges.stack()):
        if isinstance(opened.owner, Module):
            return opened.owner, opened.prefix
    return None, ""


def _recurrent(
    module: Module, args: tuple[Any, ...], kwargs: Mapping[str, Any], frame: FrameType
) -> tuple[str, ...]:
    """Give the markers of a recurrent module's call: where, what it is, its inputs."""
    mod = type(module).__name__
    trace = trace_text(frame) if WITH_STACK[0] else ""
    texts = (
        trace,
        encode_module(mod, module.extra_repr()),
        op_text(op_head(mod, "forward"), args, kwargs),
    )
    return tuple(text for text in texts if text)
