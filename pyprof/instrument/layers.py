"""A `layer:` range around each module's forward, with the module's full path.

By torch's global hooks, which hold for any module and which `torch.compile` traces through.
Recurrent modules get an op marker too: their work is one call that has no public name.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import torch
from torch.nn import Module
from torch.nn.modules.module import register_module_forward_hook, register_module_forward_pre_hook
from torch.nn.modules.rnn import RNNBase, RNNCellBase

from pyprof.instrument import ranges
from pyprof.instrument.emit import EMITTER
from pyprof.instrument.names import Names
from pyprof.instrument.op import WITH_STACK, untraceable
from pyprof.instrument.payload import op_head, op_text
from pyprof.instrument.stack import trace_text
from pyprof.marker import encode_layer, encode_module

if TYPE_CHECKING:
    from types import FrameType


class Layers:
    """The hooks, while they are in."""

    def __init__(self) -> None:
        self._names = Names()
        self._handles: tuple[Any, ...] = ()

    def install(self) -> None:
        """Put a hook before and after every module's forward."""
        self._handles = (
            register_module_forward_pre_hook(self._before),
            register_module_forward_hook(self._after, always_call=True),
        )

    def remove(self) -> None:
        """Take the hooks out."""
        for handle in self._handles:
            handle.remove()
        self._handles = ()

    def _before(self, module: Module, args: Any) -> None:  # noqa: ANN401 - a module's inputs
        if torch.compiler.is_compiling():
            return
        if not EMITTER.live() or untraceable():
            return
        frame = sys._getframe(1)  # noqa: SLF001 - the call of the module, alive until its range closes
        ranges.close_abandoned(frame)
        caller, prefix = _caller()
        name = self._names.name(module, caller, prefix)
        texts = (
            _recurrent(module, args, frame) if isinstance(module, (RNNBase, RNNCellBase)) else ()
        )
        ranges.open_range(
            encode_layer(name.path), module, *texts, frame_id=id(frame), prefix=name.prefix
        )

    def _after(self, module: Module, _args: object, _result: object) -> None:
        if torch.compiler.is_compiling():
            return
        for opened in reversed(ranges.stack()):
            if opened.owner is module:
                ranges.close_range(opened)
                return


def _caller() -> tuple[Module | None, str]:
    """Give the module whose forward runs on this thread, and what names inside it begin with."""
    for opened in reversed(ranges.stack()):
        if isinstance(opened.owner, Module):
            return opened.owner, opened.prefix
    return None, ""


def _recurrent(module: Module, args: Any, frame: FrameType) -> tuple[str, ...]:  # noqa: ANN401 - a module's inputs
    """Give the markers of a recurrent module's call: where, what it is, its inputs."""
    mod = type(module).__name__
    given = args if isinstance(args, tuple) else (args,)
    trace = trace_text(frame) if WITH_STACK[0] else ""
    texts = (
        trace,
        encode_module(mod, module.extra_repr()),
        op_text(op_head(mod, "forward"), given, {}),
    )
    return tuple(text for text in texts if text)
