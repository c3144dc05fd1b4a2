"""What a module is called: its path from the outermost module that holds it.

The path depends on who calls: a shared module has one name under each parent. Nothing is written
to modules; what is found is remembered by weak references.
"""

from __future__ import annotations

import functools
import gc
import sys
import weakref
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch.nn import Module
from torch.nn.modules.rnn import RNNBase, RNNCellBase
from torch.nn.parallel import DistributedDataParallel
from torch.utils.weak import WeakIdKeyDictionary

from pyprof.instrument.caller import unseen
from pyprof.instrument.collectives import ddp_text
from pyprof.instrument.emit import EMITTER
from pyprof.instrument.op import WITH_STACK, silent
from pyprof.instrument.payload import op_head, op_text
from pyprof.instrument.ranges import THREAD, close_down_to
from pyprof.instrument.stack import find
from pyprof.marker import encode_layer, encode_module

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pyprof.instrument.patch import Patches

_MAX_SEARCHES = 8
"""Searches of the whole heap for the parents of modules that are called on their own."""
_MAX_DEPTH = 64
_MAX_KNOWN = 16384


class ModuleName(NamedTuple):
    """A module's name, and what follows from it."""

    path: str
    prefix: str
    """What the names of the modules inside it begin with."""
    text: str
    """The layer marker."""
    says_trace: bool
    """Whether torch wrote its class: then its ops come from the user's line that calls it, which
    is said once for all of them."""


class _CachedName(NamedTuple):
    module: weakref.ref[Module]
    caller: weakref.ref[Module] | None
    name: ModuleName


class Names:
    """Names of modules, found when first asked for."""

    def __init__(self) -> None:
        self._known: dict[tuple[int, int, str], _CachedName] = {}
        self._parents: Any = WeakIdKeyDictionary()
        self._searches = 0

    def name(self, module: Module, caller: Module | None, prefix: str) -> ModuleName:
        """Give a module's name, called from the forward of `caller` (None: from no module's).

        `prefix` is what that module's Name says. A module that its caller does not hold goes by
        its path from its outermost parent; one without parents by its class.
        """
        key = (id(module), id(caller), prefix)
        cached = self._known.get(key)
        if (
            cached is not None
            and cached.module() is module
            and (caller is None if cached.caller is None else cached.caller() is caller)
        ):
            return cached.name
        path_below = _path_below(caller, module) if caller is not None else ""
        path = prefix + path_below if path_below else self._path(module)
        below = f"{path}." if path else ""
        path = path or class_name(module)
        name = ModuleName(path, below, encode_layer(path), _written_by_torch(module))
        if len(self._known) >= _MAX_KNOWN:
            self._known.clear()
        self._known[key] = _CachedName(
            weakref.ref(module), None if caller is None else weakref.ref(caller), name
        )
        return name

    def _path(self, module: Module) -> str:
        """Give the path from a module's outermost parent; empty where it has none."""
        if module not in self._parents and self._searches < _MAX_SEARCHES:
            self._searches += 1
            self._search()
        parts: list[str] = []
        here: Module | None = module
        while here is not None and len(parts) < _MAX_DEPTH:
            parent, name = self._parents.get(here) or (None, "")
            if parent is None:
                break
            parts.append(name)
            here = parent()
        return ".".join(reversed(parts))

    def _search(self) -> None:
        """Find every module alive and its parent. Reads types only: objects may lie, or act."""
        for candidate in gc.get_objects():
            if issubclass(type(candidate), Module):
                self._parents.setdefault(candidate, None)
                for name, child in _children(candidate):
                    if self._parents.get(child) is None:
                        self._parents[child] = (weakref.ref(candidate), name)


def class_name(module: Module) -> str:
    """Give a module's class, or for one made on the fly (torch.fx) the class behind it."""
    return next(kind.__name__ for kind in type(module).__mro__ if kind.__name__.isidentifier())


def _written_by_torch(module: Module) -> bool:
    """Tell whether a module's class, or one that it extends, is torch's, `Module` aside."""
    kinds = type(module).__mro__
    return any(str(k.__module__).startswith("torch.") for k in kinds[: kinds.index(Module)])


def _children(module: Module) -> Iterator[tuple[str, Module]]:
    for name, child in list(module.__dict__.get("_modules", {}).items()):
        if issubclass(type(child), Module):
            yield name, child


def _path_below(module: Module, wanted: Module) -> str:
    """Give the path from one module to another that it holds, the shortest; empty for none."""
    seen = {id(module)}
    level = [("", module)]
    while level:
        below = []
        for prefix, parent in level:
            for name, child in _children(parent):
                if child is wanted:
                    return prefix + name
                if id(child) not in seen:
                    seen.add(id(child))
                    below.append((f"{prefix}{name}.", child))
        level = below
    return ""


# A `layer:` range around each module's forward, with the module's full path.
#
# In the place where torch calls any module, `Module.__call__`. Not by torch's global forward
# hooks: with one of them in, `torch.export` (strict) refuses to trace, and a `KeyboardInterrupt`
# goes by the hook that would close the range. Recurrent modules get an op marker too: their work
# is one call that has no public name. Those of DDP say in which process group their gradients are
# reduced.


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
