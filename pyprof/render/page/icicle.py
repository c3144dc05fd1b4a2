"""The tree of modules, or of ops where no layers are known, as boxes below each other."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING

from pyprof.analysis.summary.layer_tree import NO_LAYER, Node, named
from pyprof.analysis.summary.op_totals import totals
from pyprof.render.text.formatting import duration, part_name

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import pyarrow as pa

    from pyprof.render.page.cross_filter import Selectable

_LEAST = 0.001
"""Boxes narrower than this share of all are left out: they would be less than 2 pixels wide."""
_MOST_LEVELS = 16
_MOST_BOXES = 3000


@dataclass(frozen=True, slots=True)
class IcicleBox:
    """One node."""

    name: str
    path: str
    depth: int
    start_ns: int
    total_ns: int
    times: str
    colour: int
    names: tuple[str, ...] = ()
    """Of the boxes from below the root to this one."""


def modules(root: Node) -> Node | None:
    """Give the tree of modules; None where no row has a layer."""
    layers = [child for child in root.children if child.name != NO_LAYER]
    return named(root) if layers else None


OPS = ("dir", "op", "kernel")
"""What the sums that `ops` takes are by."""


def ops(sums: pa.Table) -> Node:
    """Give the tree of direction, op and kernel."""
    nested: dict[str, dict[str, dict[str, tuple[int, int]]]] = {}
    for group in totals(sums):
        part = part_name(group.key[0])
        op, kernel = (name or "(no op)" for name in group.key[1:])
        nested.setdefault(part, {}).setdefault(op, {})[kernel] = (group.time_ns, group.calls)
    return _sum(
        "",
        [
            _sum(part, [
                _sum(op, [Node(name, *leaf, *leaf, ()) for name, leaf in kernels.items()])
                for op, kernels in by_op.items()
            ])
            for part, by_op in nested.items()
        ],
    )  # fmt: skip


def _sum(name: str, children: list[Node]) -> Node:
    ordered = tuple(sorted(children, key=lambda node: (-node.total_ns, node.name)))
    total = sum(child.total_ns for child in children)
    return Node(name, 0, 0, total, sum(child.rows for child in children), ordered)


def boxes(root: Node, whole_name: str) -> list[IcicleBox]:
    """Lay the tree out, children side by side below their parent; the longest boxes of it."""
    laid_out = list(_boxes(root, root.total_ns * _LEAST, (), 0, 0, whole_name))
    # A parent is at least as long as its children, and comes before them: none is left alone.
    return sorted(laid_out, key=lambda box: -box.total_ns)[:_MOST_BOXES]


def _boxes(
    node: Node, least_ns: float, path: tuple[str, ...], start_ns: int, colour: int, name: str
) -> Iterator[IcicleBox]:
    depth = len(path)
    times = f"{duration(node.total_ns)} total, {duration(node.self_ns)} own, {node.rows:,} rows"
    yield IcicleBox(
        name, ".".join(path) or name, depth, start_ns, node.total_ns, times, colour, path
    )
    if depth >= _MOST_LEVELS:
        return
    at = start_ns
    for place, child in enumerate(node.children):
        if child.total_ns < least_ns or not child.total_ns:
            break
        below = (*path, child.name)
        yield from _boxes(child, least_ns, below, at, colour + place + 1, child.name)
        at += child.total_ns


_MOST_PARTS = 256
"""Of a layer's name that can be chosen; each has a text as long as all before it."""


def layer_keys(boxes: Sequence[IcicleBox], selectable: Selectable) -> list[str | None]:
    """Write what each box of modules stands for: rows whose layer is its, or below it."""
    within: dict[str, list[str]] = {}
    for number, layer in enumerate(selectable.layers()):
        dots = (place for place, letter in enumerate(layer) if letter == ".")
        for end in (*islice(dots, _MOST_PARTS), len(layer)):
            within.setdefault(layer[:end], []).append(str(number))
    return [_layer_key(box, within) for box in boxes]


def _layer_key(box: IcicleBox, within: Mapping[str, Sequence[str]]) -> str | None:
    if not box.names:
        return ""  # all
    if box.names == (NO_LAYER,):
        return "layer=-1"
    numbers = within.get(box.path)
    return f"layer={','.join(numbers)}" if numbers else None


def op_keys(boxes: Sequence[IcicleBox], selectable: Selectable) -> list[str | None]:
    """Write what each box of directions, ops and kernels stands for."""
    return [selectable.named_key(dict(zip(OPS, box.names, strict=False))) for box in boxes]
