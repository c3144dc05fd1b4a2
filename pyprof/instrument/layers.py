"""Layers: each module's path from its outermost parent, and a range around its forward.

The path depends on the caller: a shared module has one name under each parent. Nothing is stored on
modules; names are kept behind weak references.
"""

from __future__ import annotations

import functools
import gc
import sys
import weakref
from typing import TYPE_CHECKING, Any

import torch
from torch.nn import Module
from torch.nn.modules.module import register_module_module_registration_hook
from torch.nn.modules.rnn import RNNBase, RNNCellBase
from torch.nn.parallel import DistributedDataParallel
from torch.utils.weak import WeakIdKeyDictionary

from pyprof.instrument.ops.caller import hide_frames
from pyprof.instrument.ops.op import WITH_STACK, is_disabled
from pyprof.instrument.ops.payload import op_head, op_text
from pyprof.instrument.ops.process_groups import ddp_text
from pyprof.instrument.ranges.emit import EMITTER
from pyprof.instrument.ranges.open_ranges import THREAD
from pyprof.instrument.ranges.stack import find
from pyprof.marker import encode_layer, encode_module

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from pyprof.instrument.ops.patch import Patches

_MAX_SEARCHES = 8
"""Searches of the whole heap for the parents of modules that are called directly."""
_MAX_DEPTH = 64
"""Maximum number of names in a path: modules may hold one another."""
_RECURRENT = (RNNBase, RNNCellBase)
_MAX_KNOWN = 16384
"""Modules cached under one caller; the cache is cleared when full."""
_getframe = sys._getframe  # noqa: SLF001 - the cheap way


class ModuleName:
    """The name of a module as called from one other module, and what follows from it."""

    __slots__ = (
        *("inside", "is_installed", "module", "path", "prefix", "says_more", "says_trace", "text"),
    )

    def __init__(
        self,
        module: Module,
        path: str,
        caller: ModuleName | None,
        forget: Callable[[object], object],
    ) -> None:
        self.module = weakref.ref(module, forget)
        self.path = path or next(
            kind.__name__ for kind in type(module).__mro__ if kind.__name__.isidentifier()
        )
        self.prefix = f"{path}." if path else ""
        """Prefix of the names of the modules inside it."""
        self.text = encode_layer(self.path)
        """The layer marker."""
        kinds = type(module).__mro__
        file = getattr(sys.modules.get(kinds[0].__module__), "__file__", None) or ""
        self.is_installed = "site-packages" in file or "dist-packages" in file
        """Whether its class is in an installed library."""
        self.says_trace = any(
            str(k.__module__).startswith("torch.") for k in kinds[: kinds.index(Module)]
        ) or (self.is_installed and not (caller and caller.is_installed))
        """Whether its class is torch's, or the outermost of a library's: its ops then share the
        user's line that calls the module, and one trace marker serves them all. It is the only one
        of ops that the library took hold of before they were replaced: F.gelu of transformers."""
        self.says_more = isinstance(module, (*_RECURRENT, DistributedDataParallel))
        """Whether it has markers besides the layer's."""
        self.inside: dict[int, ModuleName] = {}
        """Modules that its forward called, by id, while they live."""


class Names:
    """Names of modules, looked up on first use."""

    def __init__(self) -> None:
        self.outermost: dict[int, ModuleName] = {}
        """Modules called from outside any forward."""
        self._held: Any = WeakIdKeyDictionary()
        """By module that took another in, or was taken in: whether it was taken in."""
        self._parents: Any = WeakIdKeyDictionary()
        self._parentless: set[type[Module]] = set()
        """Classes of modules for which a search found no parent: a function that makes its loss or
        activation anew in each call must not wait for a search each time."""
        self._searches = 0

    def name(self, module: Module, caller: ModuleName | None) -> ModuleName:
        """Return the module's name when called from the forward of `caller`, or from none.

        A module that is not below its caller is named by the path from its outermost parent; one
        without parents by its class.
        """
        known = self.outermost if caller is None else caller.inside
        key = id(module)
        if (name := known.get(key)) is not None:
            return name
        holder = caller.module() if caller is not None else None
        path_below = _path_below(holder, module) if holder is not None else ""
        path = caller.prefix + path_below if caller and path_below else self._path(module)
        if len(known) >= _MAX_KNOWN:
            known.clear()
        # bound, since Python clears a module's globals at its end, before the last weak references
        name = known[key] = ModuleName(module, path, caller, functools.partial(_drop, known, key))
        return name

    def note_part(self, holder: Module, name: str, part: Module | None) -> None:
        """Note that a module took in another: one that was not taken in itself needs no search."""
        del name
        if part is not None and not torch.compiler.is_dynamo_compiling():
            self._held[part] = True
            self._held.setdefault(holder, False)

    def search_once(self) -> None:
        """Search now, unless modules were found before, so that no recorded step waits for it."""
        if not self._parents and self._searches < _MAX_SEARCHES:
            self._search()

    def _path(self, module: Module) -> str:
        """Return the path from a module's outermost parent; "" if it has none."""
        if self._held.get(module) is False:
            return ""
        kind = type(module)
        if (
            module not in self._parents
            and kind not in self._parentless
            and self._searches < _MAX_SEARCHES
        ):
            self._search()
            if self._parents.get(module) is None:
                self._parentless.add(kind)
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
        """Record the parent of every live module. Inspects types only: an object may run code."""
        self._searches += 1
        for candidate in gc.get_objects():
            if issubclass(type(candidate), Module):
                self._parents.setdefault(candidate, None)
                for name, child in _children(candidate):
                    if self._parents.get(child) is None:
                        self._parents[child] = (weakref.ref(candidate), name)


def _drop(known: dict[int, ModuleName], key: int, gone: object) -> None:
    """Forget a module that was collected, before its id is reused."""
    name = known.get(key)
    if name is not None and name.module is gone:
        del known[key]


def _children(module: Module) -> Iterator[tuple[str, Module]]:
    for name, child in list(module.__dict__.get("_modules", {}).items()):
        if issubclass(type(child), Module):
            yield name, child


def _path_below(module: Module, wanted: Module) -> str:
    """Return the shortest path from a module to one below it; "" if there is none."""
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


# `Module.__call__` is replaced, not hooked: with a global forward hook `torch.export` (strict)
# refuses to trace, and a KeyboardInterrupt skips the hook that would close the range. Recurrent
# modules get an op marker too, since their work is one call without a public name. DDP modules
# record the process group that reduces their gradients.
def wrap_modules(patches: Patches) -> Names:
    """Put a range around the call of every module; return their names."""
    original = Module.__call__
    names = Names()

    @functools.wraps(original)
    @hide_frames
    def call(self: Module, /, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - as the module
        if torch.compiler.is_dynamo_compiling() or (push := EMITTER.push) is None or is_disabled():
            return original(self, *args, **kwargs)
        here, pop = THREAD.here, EMITTER.pop
        caller, frame, within, trace = here.name, here.frame, here.within, here.trace
        known = names.outermost if caller is None else caller.inside
        name = known.get(id(self)) or names.name(self, caller)
        ranges = here.open
        height = len(ranges)
        try:
            ranges.append(self)
            push(name.text)
            if WITH_STACK[0]:
                stack = find(2, frame, within)
                text = stack.text
                if text is not trace and text and name.says_trace:
                    ranges.append(self)
                    push(text)
                    here.trace = text
                here.frame, here.within = _getframe(), stack
            if name.says_more:
                for text in _recurrent_markers(self, args, kwargs):
                    ranges.append(self)
                    push(text)
                if isinstance(self, DistributedDataParallel):
                    push(ddp_text(self))  # closed at once: it describes no call
                    pop()
            here.name = name
            return original(self, *args, **kwargs)
        finally:
            here.name, here.frame, here.within, here.trace = caller, frame, within, trace
            while len(ranges) > height:  # and any range left open inside
                ranges.pop()
                pop()

    patches.replace(Module, "__call__", call)
    patches.on_restore(register_module_module_registration_hook(names.note_part).remove)
    return names


def _recurrent_markers(
    module: Module, args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> tuple[str, ...]:
    """Return the markers of a recurrent module's call; () for other modules."""
    if not isinstance(module, _RECURRENT):
        return ()
    mod = type(module).__name__
    head = op_head(mod, "forward")
    return encode_module(mod, module.extra_repr()), op_text(head, args, kwargs)
