"""A `layer:` range around each module's forward, with the module's full path.

In the place where torch calls any module, `Module.__call__`. Not by torch's global forward hooks:
with one of them in, `torch.export` (strict) refuses to trace, and a `KeyboardInterrupt` goes by
the hook that would close the range.
Recurrent modules get an op marker too: their work is one call that has no public name. Those of DDP
say in which process group their gradients are reduced.
"""

from __future__ import annotations

import functools
import sys
from typing import TYPE_CHECKING, Any

import torch
from torch.nn import Module
from torch.nn.modules.rnn import RNNBase, RNNCellBase
from torch.nn.parallel import DistributedDataParallel

from pyprof.instrument.caller import unseen
from pyprof.instrument.collectives import ddp_text
from pyprof.instrument.emit import EMITTER
from pyprof.instrument.names import Names
from pyprof.instrument.op import WITH_STACK, silent
from pyprof.instrument.payload import op_head, op_text
from pyprof.instrument.ranges import THREAD, close_down_to
from pyprof.instrument.stack import find
from pyprof.marker import encode_module

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyprof.instrument.patch import Patches

_RECURRENT = (RNNBase, RNNCellBase)


def wrap_modules(patches: Patches) -> None:
    """Put a range around the call of every module."""
    original = Module.__call__
    names = Names()

    @functools.wraps(original)
    @unseen
    def call(self: Module, /, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - as the module
        if torch.compiler.is_dynamo_compiling() or (push := EMITTER.push) is None or silent():
            return original(self, *args, **kwargs)
        here = THREAD.here
        module, prefix = here.module, here.prefix
        frame, within, trace = here.frame, here.within, here.trace
        name = names.name(self, module, prefix)
        ranges = here.open
        height = len(ranges)
        try:
            ranges.append(self)
            push(name.text)
            if WITH_STACK[0]:
                stack = find(2, frame, within)
                if name.says_trace and stack.text is not trace and stack.text:
                    ranges.append(self)
                    push(stack.text)
                    here.trace = stack.text
                here.frame, here.within = sys._getframe(), stack  # noqa: SLF001 - the cheap way
            if isinstance(self, _RECURRENT):
                for text in _recurrent(self, args, kwargs):
                    ranges.append(self)
                    push(text)
            elif isinstance(self, DistributedDataParallel):
                push(ddp_text(self))  # around nothing: what it calls is no part of it
                EMITTER.pop()
            here.module, here.prefix = self, name.prefix
            return original(self, *args, **kwargs)
        finally:
            here.module, here.prefix = module, prefix
            here.frame, here.within, here.trace = frame, within, trace
            close_down_to(height, ranges)

    patches.replace(Module, "__call__", call)


def _recurrent(module: Module, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> tuple[str, ...]:
    """Give the markers of a recurrent module's call: what it is, its inputs."""
    mod = type(module).__name__
    head = op_head(mod, "forward")
    return encode_module(mod, module.extra_repr()), op_text(head, args, kwargs)
