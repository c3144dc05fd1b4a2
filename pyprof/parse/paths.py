"""The chain of texts around a kernel, each distinct chain put into words once.

A path is a parent path and one more template; paths are numbered, so that the million kernels
of a training run share some thousands of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from pyprof import marker
from pyprof.arrays import NONE
from pyprof.marker import Kind
from pyprof.parse import frames
from pyprof.parse.nesting import depths

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from pyprof.arrays import Ints
    from pyprof.parse.texts import Texts

_TRACES = 1 << 18
"""Stacks that are kept without the framework's frames."""


@dataclass(frozen=True, slots=True)
class Path:
    """What the ranges around a kernel say, outermost first."""

    layer: tuple[str, ...] = ()
    trace: tuple[str, ...] = ()
    """`file:line` of the innermost trace marker, the framework's frames left out."""
    modules: tuple[str, ...] = ()
    """Raw module texts."""
    markers: tuple[str, ...] = ()
    """Raw op texts."""
    ops: tuple[tuple[str, str], ...] = ()
    """(mod, op) of each op text."""
    seqs: tuple[str, ...] = ()
    """Templates of PyTorch's own ranges."""
    backward: bool = False
    optimizer: bool = False
    of_caller: tuple[bool, bool] = (False, False)
    """In a backward pass, whether layer and trace are but those around it: where it was called."""


@dataclass(frozen=True, slots=True)
class Paths:
    """All distinct paths, and the path of each range (itself included)."""

    of_range: Ints
    parent: Ints
    """Always an earlier one."""
    template: Ints

    def backward(self, texts: Texts) -> NDArray[np.bool_]:
        """Tell of each path whether it is one of the backward pass."""
        begins = np.array(
            [
                kind == Kind.SEQ and _is_node(text)
                for text, kind in zip(texts.templates, texts.kind.tolist(), strict=True)
            ],
            bool,
        )
        found = begins[self.template].tolist() if len(begins) else []
        for path, parent in enumerate(self.parent.tolist()):
            found[path] = found[path] or (parent != NONE and found[parent])
        return np.array(found, bool)

    def describe(self, texts: Texts, wanted: Ints, most: int) -> list[Path]:
        """Put some paths into words; of what is nested deeper, the innermost `most`.

        All needed are walked once, however deep: what two share is not spelt out before it is
        asked for.
        """
        below = self._below(wanted)
        asked = set(wanted.tolist())
        found: dict[int, Path] = {}
        around = _Around(most)
        left = below.get(NONE, [])
        while left:
            path = left.pop()
            if path < 0:
                around.leave()
                continue
            template = int(self.template[path])
            around.enter(texts.templates[template], Kind(int(texts.kind[template])))
            if path in asked:
                found[path] = around.path()
            left.append(~path)  # to leave it behind all that is below
            left += below.get(path, [])
        return [found[path] for path in wanted.tolist()]

    def _below(self, wanted: Ints) -> dict[int, list[int]]:
        """Give the paths below each, of those that lead to some wanted ones."""
        needed = np.zeros(len(self.parent), bool)
        active = np.unique(wanted)
        while len(active):
            needed[active] = True
            above = np.unique(self.parent[active])
            active = above[above != NONE]
            active = active[~needed[active]]
        below: dict[int, list[int]] = {}
        rows = np.flatnonzero(needed)
        for path, parent in zip(rows.tolist(), self.parent[rows].tolist(), strict=True):
            below.setdefault(parent, []).append(path)
        return below


def intern(parent: Ints, code: NDArray[np.int32]) -> Paths:
    """Number the distinct chains of templates, level by level from the outside in."""
    depth = depths(parent)
    order = np.argsort(depth, kind="stable")
    levels = np.split(order, np.flatnonzero(np.diff(depth[order])) + 1) if len(order) else []
    of_range = np.full(len(parent), NONE)
    parents, templates, count = [], [], 0
    for level in levels:
        above = np.where(parent[level] == NONE, NONE, of_range[parent[level]])
        pair, number = np.unique(((above + 1) << 32) | code[level], return_inverse=True)
        of_range[level] = number + count
        parents.append((pair >> 32) - 1)
        templates.append(pair & 0xFFFFFFFF)
        count += len(pair)
    empty = np.zeros(0, np.int64)
    return Paths(of_range, np.concatenate([empty, *parents]), np.concatenate([empty, *templates]))


class _Around:
    """What the ranges say that a walk is inside of."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._layers: list[str] = []
        self._modules: list[str] = []
        self._markers: list[str] = []
        self._ops: list[tuple[str, str]] = []
        self._seqs: list[str] = []
        self._state = _State()
        self._before: list[tuple[tuple[int, ...], _State]] = []

    @property
    def _lists(self) -> tuple[list[Any], ...]:
        return self._layers, self._modules, self._markers, self._ops, self._seqs

    def enter(self, text: str, kind: Kind) -> None:
        """Go into a range."""
        self._before.append((tuple(map(len, self._lists)), self._state))
        if kind == Kind.LAYER:
            self._layers.append(marker.layer_name(text))
        elif kind == Kind.TRACE:
            self._state = self._state._replace(trace=_user_trace(text))
        elif kind == Kind.MODULE:
            self._modules.append(text)
        elif kind == Kind.OP:
            self._enter_op(text)
        elif kind == Kind.SEQ:
            self._enter_seq(text)
        elif kind == Kind.OPTIMIZER:
            self._state = self._state._replace(optimizer=True)

    def leave(self) -> None:
        """Go out of the range that was entered last."""
        lengths, self._state = self._before.pop()
        for listed, length in zip(self._lists, lengths, strict=True):
            del listed[length:]

    def path(self) -> Path:
        """Say what is around."""
        state = self._state
        layer, modules, markers, ops, seqs = (tuple(x[-self._most :]) for x in self._lists)
        same = (len(self._layers) == state.caller_layers, state.trace == state.caller_trace)
        return Path(
            layer,
            state.trace[-self._most :],
            modules,
            markers,
            ops,
            seqs,
            state.backward,
            state.optimizer,
            same if state.backward else (False, False),
        )

    def _enter_op(self, text: str) -> None:
        call = marker.decode_op(text)
        if call is None or call.op in marker.NOT_OPS:
            return
        self._markers.append(text)
        self._ops.append((call.mod, call.op))
        if call.op == "step":
            self._state = self._state._replace(optimizer=True)

    def _enter_seq(self, text: str) -> None:
        if _is_checkpoint(text):
            return
        self._seqs.append(text)
        if not self._state.backward and _is_node(text):
            self._state = self._state._replace(
                backward=True, caller_layers=len(self._layers), caller_trace=self._state.trace
            )


class _State(NamedTuple):
    """What a range inside replaces, rather than adds to."""

    trace: tuple[str, ...] = ()
    backward: bool = False
    optimizer: bool = False
    caller_layers: int = 0
    """Layers around the backward pass that it is in."""
    caller_trace: tuple[str, ...] = ()


@lru_cache(maxsize=_TRACES)
def _user_trace(text: str) -> tuple[str, ...]:
    return frames.user_trace(marker.decode_trace(text))


def _is_checkpoint(text: str) -> bool:
    """Tell the node of activation checkpointing, which runs forward ops again inside it."""
    return "CheckpointFunctionBackward" in text


def _is_node(text: str) -> bool:
    return not _is_checkpoint(text) and marker.decode_seq(text).backward


def counts(text: str) -> bool:
    """Tell whether a template puts an op or one of PyTorch's own ranges into a path."""
    around = _Around(1)
    around.enter(text, marker.classify(text))
    path = around.path()
    return bool(path.markers or path.seqs)
