"""Words for a path: the ops that it names, and the sizes and dtypes of their tensors."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np

from pyprof import marker
from pyprof.arrays import NONE, Ints
from pyprof.marker import Tensor
from pyprof.parse.autograd import is_engine
from pyprof.parse.paths import Path
from pyprof.parse.records import Coded

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pyprof.arrays import Ints
    from pyprof.marker import Call, Value
    from pyprof.parse.records import Column

NOWHERE = Path()
"""The path of what was launched outside all ranges, or by nobody knows whom."""

_OLD_NODE = re.compile(r"(?:Backward|_backward), seq = ")
_NUMBER = re.compile(r", (?:seq|op_id) = (?:-?\d+)?")
_COMPILED = re.compile(r"(?:^|: )CompiledFunction(?:Backward)?(?:,|$)")
"""What torch.compile makes of a whole graph: it holds the ops that are called in it."""
_TENSORLESS = frozenset({"device", "layout", "memory_format", "Generator"})
_DECORATION = re.compile(r"torch|autograd|_backward|::|jit")


def unnumbered(text: str) -> str:
    """Leave out a text's sequence number and ids."""
    return _NUMBER.sub("", text)


def ops(named: Sequence[tuple[str, str]], seqs: Sequence[str]) -> list[tuple[str, str]]:
    """Name the ops of a path as (mod, op): those of its op texts, else of PyTorch's own ranges.

    In texts of the first PyTorch versions only the backward nodes count, without their suffix:
    this is what the original wrote. From others, every range counts under its own name.
    """
    if named:
        return list(named)
    seqs = [text for text in seqs if not _COMPILED.search(text)] or seqs
    old_nodes = [text for text in seqs if _OLD_NODE.search(text) and not is_engine(text)]
    if old_nodes:
        return [("na", _without_backward(text)) for text in old_nodes]
    decoded = [marker.decode_seq(text) for text in seqs]
    nodes = [entry for entry in decoded if entry.call is not None] or decoded
    return [_mod_and_op(entry.node) for entry in nodes]


def forward_ops(path: Path) -> list[tuple[str, str]]:
    """Name the ops of a forward path as `ops` does; none for a whole graph that was compiled."""
    return [found for found in ops(path.ops, path.seqs) if not _COMPILED.match(found[1])]


def _without_backward(text: str) -> str:
    return _DECORATION.sub("", text.split(", ", 1)[0]).split("Backward")[0]


def _mod_and_op(name: str) -> tuple[str, str]:
    plain, *template = name.partition("<")
    mod, _, op = plain.rpartition("::")
    return (mod or "na", "".join((op, *template)))


def arguments(described: list[Path], path: Ints, partner: Ints) -> dict[str, Column]:
    """Give sizes and dtypes of the input tensors of each row's op, where some text tells them.

    They are those of the innermost op text; else of the innermost range of PyTorch's that has
    sizes, with the forward call's dtype; else those of the forward call.
    """
    known = [_tensors(entry) for entry in described]
    width = len(described) + 1  # NONE is the last one
    pairs, index = np.unique(path % width * width + partner % width, return_inverse=True)
    known.append(None)
    marked = [bool(entry.markers) for entry in described] + [False]
    chosen = [
        # What a marker does not tell is not what its forward op has.
        None
        if marked[pair // width] and known[pair // width] is None
        else _choose(known[pair // width], known[pair % width])
        for pair in pairs.tolist()
    ]
    rows = np.array([NONE if x is None else place for place, x in enumerate(chosen)], np.int64)
    index = rows[index] if len(rows) else np.zeros(0, np.int64)
    found = [tensors or [] for tensors in chosen]
    sizes = [[list(tensor.shape) for tensor in tensors] for tensors in found]
    return {
        "sizes": Coded(index, sizes),
        "dtypes": Coded(index, [[tensor.dtype or "" for tensor in tensors] for tensors in found]),
    }


def _choose(own: list[Tensor] | None, forward: list[Tensor] | None) -> list[Tensor] | None:
    if not own or not forward:
        return own or forward or own
    dtypes = {tensor.dtype for tensor in forward}
    if len(dtypes) == 1 and all(tensor.dtype is None for tensor in own):
        (dtype,) = dtypes
        return [Tensor(tensor.shape, dtype) for tensor in own]
    return own


def _tensors(path: Path) -> list[Tensor] | None:
    """Give the tensors of a path's op; [] where it takes none, None where that is not known."""
    calls = [call for text in reversed(path.markers) if (call := marker.decode_op(text))]
    calls = [call for call in calls if call.args or call.kwargs]  # others tell no arguments
    if calls:
        return list(tensors(calls[0])) or (None if _hides(calls[0]) else [])
    if path.markers:
        return None  # what lies around it may be of something larger
    for text in reversed(path.seqs):
        call = marker.decode_seq(text).call
        if call and (found := list(tensors(call))):
            return found
    return None


def _hides(call: Call) -> bool:
    """Tell whether a call without tensors may have some that its text does not tell."""
    return not call.whole or any(map(_opaque, (*call.args, *call.kwargs.values())))


def _opaque(value: Value) -> bool:
    if isinstance(value, tuple):
        return any(map(_opaque, value))
    if isinstance(value, marker.Opaque):
        return value.type not in _TENSORLESS
    return isinstance(value, marker.Summary)


def tensors(call: Call) -> Iterator[Tensor]:
    """Give the tensors among a call's arguments, those in lists too."""
    for value in (*call.args, *call.kwargs.values()):
        yield from _tensors_in(value)


def _tensors_in(value: Value) -> Iterator[Tensor]:
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, tuple):
        for item in value:
            yield from _tensors_in(item)
    elif isinstance(value, marker.Summary):
        yield from _tensors_in(value.items)


def with_nothing(described: list[Path], path: Ints) -> tuple[list[Path], Ints]:
    """Give rows outside all ranges an entry of their own, which says nothing."""
    return [*described, NOWHERE], np.where(path == NONE, len(described), path)
