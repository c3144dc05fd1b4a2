"""Puts wrappers in the place of originals, and every original back."""

from __future__ import annotations

from types import FunctionType
from typing import TYPE_CHECKING, Any, NamedTuple

import torch.jit._builtins

from pyprof.instrument.op import Op, make_op
from pyprof.instrument.swap import can_swap, swap

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from pyprof.instrument.targets import Target


_scriptable: Any = torch.jit._builtins._get_builtin_table  # noqa: SLF001 - the only such register
"""Gives the table of what torch.jit.script compiles functions to, by their ids."""


class _Patched(NamedTuple):
    home: object
    name: str
    put: object
    original: object
    own: bool
    """Whether the home had the attribute itself; inherited ones are taken away, not put back."""


class Patches:
    """The attributes replaced so far."""

    def __init__(self) -> None:
        self._patched: list[_Patched] = []
        self._scriptable: list[int] = []
        self._undo: list[Callable[[], None]] = []

    def replace(self, home: object, name: str, replacement: object) -> None:
        """Set an attribute, remembering what was there."""
        own = name in vars(home)
        original = vars(home)[name] if own else getattr(home, name)
        setattr(home, name, replacement)
        self._patched.append(_Patched(home, name, replacement, original, own))

    def wrap_all(self, targets: Iterable[Target]) -> None:
        """Wrap each target; one that has several homes stays one object in all."""
        ops: dict[int, Op] = {}
        swapped: set[int] = set()
        for target in targets:
            if id(target.original) in swapped:
                continue
            if isinstance(target.original, FunctionType) and can_swap(target.original):
                swapped.add(id(target.original))
                self.swap(target.original, target.home, target.name, target.mod)
                continue
            op = ops.get(id(target.original))
            if op is None:
                op = ops[id(target.original)] = make_op(
                    target.original,
                    target.home,
                    target.name,
                    target.mod,
                    overridable=target.overridable,
                )
            self.replace(target.home, target.name, op)
        self._register(ops.values())

    def swap(self, function: FunctionType, home: object, name: str, mod: str) -> None:
        """Wrap a function from within, where it is."""
        self._undo.append(swap(function, home, name, mod))

    def _register(self, ops: Iterable[Op]) -> None:
        """Let torch.jit.script compile a wrapper to what it would compile the original to."""
        table = _scriptable()
        for op in ops:
            compiled = table.get(id(op.__wrapped__))
            if compiled is not None:
                table[id(op)] = compiled
                self._scriptable.append(id(op))

    def restore(self) -> None:
        """Put every original back, the very same objects, except where someone replaced ours."""
        for home, name, put, original, own in reversed(self._patched):
            if vars(home).get(name) is not put:
                continue
            if own:
                setattr(home, name, original)
            else:
                delattr(home, name)
        self._patched.clear()
        for undo in reversed(self._undo):
            undo()
        self._undo.clear()
        table = _scriptable()
        for key in self._scriptable:
            table.pop(key, None)
        self._scriptable.clear()
