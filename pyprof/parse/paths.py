"""The chain of texts around a kernel, each distinct chain put into words once.

A path is a parent path and one more template; paths are numbered, so that the million kernels
of a training run share some thousands of them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from pyprof import marker
from pyprof.marker import Kind
from pyprof.parse import frames
from pyprof.parse.nesting import NONE, depths

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from pyprof.parse.nesting import Ints
    from pyprof.parse.texts import Texts


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
    caller: tuple[tuple[str, ...], tuple[str, ...]] = ((), ())
    """Layer and trace around the backward pass that it is in: where that was called."""


@dataclass(frozen=True, slots=True)
class Paths:
    """All distinct paths, and the path of each range (itself included)."""

    of_range: Ints
    parent: Ints
    template: Ints

    def describe(self, texts: Texts) -> list[Path]:
        """Put every path into words, parents before children."""
        described: list[Path] = []
        for parent, template in zip(self.parent.tolist(), self.template.tolist(), strict=True):
            above = described[parent] if parent != NONE else _TOP
            kind = Kind(int(texts.kind[template]))
            described.append(_extend(above, texts.templates[template], kind))
        return described


_TOP = Path()


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


def _extend(path: Path, text: str, kind: Kind) -> Path:
    if kind == Kind.LAYER:
        return replace(path, layer=(*path.layer, marker.layer_name(text)))
    if kind == Kind.TRACE:
        return replace(path, trace=frames.user_trace(marker.decode_trace(text)))
    if kind == Kind.MODULE:
        return replace(path, modules=(*path.modules, text))
    if kind == Kind.OP:
        return _with_op(path, text)
    if kind == Kind.SEQ:
        return _with_seq(path, text)
    return replace(path, optimizer=True) if kind == Kind.OPTIMIZER else path


def _with_op(path: Path, text: str) -> Path:
    call = marker.decode_op(text)
    if call is None or call.op in marker.NOT_OPS:
        return path
    return replace(
        path,
        markers=(*path.markers, text),
        ops=(*path.ops, (call.mod, call.op)),
        optimizer=path.optimizer or call.op == "step",
    )


def _with_seq(path: Path, text: str) -> Path:
    # Activation checkpointing runs forward ops again inside a backward node; these are forward.
    if "CheckpointFunctionBackward" in text:
        return path
    path = replace(path, seqs=(*path.seqs, text))
    if path.backward or not marker.decode_seq(text).backward:
        return path
    return replace(path, backward=True, caller=(path.layer, path.trace))


def counts(text: str) -> bool:
    """Tell whether a template puts an op or one of PyTorch's own ranges into a path."""
    path = _extend(_TOP, text, marker.classify(text))
    return bool(path.markers or path.seqs)
