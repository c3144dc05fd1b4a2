"""The tree of modules, or, without layers, of ops and their kernels, as boxes below each other."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any

from pyprof.answers.summary_answer import NO_LAYER
from pyprof.quantities import counted, duration
from pyprof.records.merging import add_up
from pyprof.render.page import figures
from pyprof.render.text.formatting import part_name

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import pyarrow as pa

    from pyprof.answers.summary_answer import LayerTime
    from pyprof.render.page.cross_filter import FilterData
    from pyprof.render.page.parts import Page

TITLE, ORDER = "Modules", 70

_OP_LEVELS = ("dir", "op", "kernel")
"""The levels of the tree of ops."""
_LEAST_IN_LAYERS = 0.05
"""Below this share of the time, a tree of modules would be one box of what is outside of them."""
_MAX_LEVELS = 16


def section(page: Page) -> Mapping[str, Any]:
    """The figure of the tree, with its title."""
    root, on = modules(page.answer.layers), page.answer.processor
    inside = (
        "little time is in layers"
        if _in_layers(page.answer.layers)
        else "the capture has no layers"
    )
    title = "Modules" if root else f"Ops and their kernels ({inside})"
    drawn = boxes(root or ops(page.report.attributes), f"all {on} time")
    keys = (
        layer_keys(drawn, page.selectable)
        if root
        else [
            page.selectable.named_key(dict(zip(_OP_LEVELS, box.names, strict=False)))
            for box in drawn
        ]
    )
    return {"title_text": title, "icicle": figures.icicle(drawn, keys, title, on)}


@dataclass(frozen=True, slots=True, kw_only=True)
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
    """Names of the boxes from below the root to this one."""


@dataclass(frozen=True, slots=True)
class Node:
    """A node of the tree that is drawn; its children are ordered, the longest first."""

    name: str
    time_ns: int
    own_ns: int
    rows: int
    children: list[Node]


def modules(layers: Sequence[LayerTime]) -> Node | None:
    """The tree of modules; None if little of the time is in any."""
    if _in_layers(layers) <= _LEAST_IN_LAYERS:
        return None
    nodes: list[Node] = []
    for layer in layers:  # each before those inside it
        name = layer.path[-1] if layer.path else ""
        node = Node(name, layer.time_ns, layer.own_ns, layer.rows, [])
        del nodes[len(layer.path) :]
        if nodes:
            nodes[-1].children.append(node)
        nodes.append(node)
    return nodes[0]


def _in_layers(layers: Sequence[LayerTime]) -> float:
    """The share of the time that is in layers."""
    outside_ns = sum(layer.time_ns for layer in layers if layer.path == (NO_LAYER,))
    return 1 - outside_ns / max(layers[0].time_ns, 1) if len(layers) > 1 else 0.0


def ops(attributes: pa.Table) -> Node:
    """The tree of direction, op and kernel, from `Report.attributes`."""
    nested: dict[str, dict[str, dict[str, tuple[int, int]]]] = {}
    for group in add_up(attributes, _OP_LEVELS, {"ns": "sum", "rows": "sum"}).to_pylist():
        part = part_name(group["dir"])
        op, kernel = (group[level] or "(no op)" for level in _OP_LEVELS[1:])
        nested.setdefault(part, {}).setdefault(op, {})[kernel] = (group["ns"], group["rows"])
    return _sum(
        "",
        [
            _sum(part, [
                _sum(op, [Node(name, ns, ns, calls, []) for name, (ns, calls) in kernels.items()])
                for op, kernels in by_op.items()
            ])
            for part, by_op in nested.items()
        ],
    )  # fmt: skip


def _sum(name: str, children: list[Node]) -> Node:
    children.sort(key=lambda node: (-node.time_ns, node.name))
    total_ns, rows = (
        sum(getattr(child, part) for child in children) for part in ("time_ns", "rows")
    )
    return Node(name, total_ns, 0, rows, children)


def boxes(root: Node, whole_name: str) -> list[IcicleBox]:
    """Lay the tree out, children side by side below their parent; return the longest boxes."""
    laid_out = list(_boxes(root, root.time_ns * figures.MIN_WIDTH, (), 0, 0, whole_name))
    # A parent is at least as long as its children, and comes before them: no box lacks its parent.
    return sorted(laid_out, key=lambda box: -box.total_ns)[: figures.MAX_BOXES]


def _boxes(
    node: Node, least_ns: float, path: tuple[str, ...], start_ns: int, colour: int, name: str
) -> Iterator[IcicleBox]:
    depth = len(path)
    times = (
        f"{duration(node.time_ns)} total, {duration(node.own_ns)} own, {counted(node.rows, 'row')}"
    )
    yield IcicleBox(
        name=name,
        path=".".join(path) or name,
        depth=depth,
        start_ns=start_ns,
        total_ns=node.time_ns,
        times=times,
        colour=colour,
        names=path,
    )
    if depth >= _MAX_LEVELS:
        return
    at = start_ns
    for index, child in enumerate(node.children):
        if child.time_ns < least_ns or not child.time_ns:
            break
        below = (*path, child.name)
        yield from _boxes(child, least_ns, below, at, colour + index + 1, child.name)
        at += child.time_ns


_MAX_PARTS = 256
"""Maximum parts of a layer's name that can be chosen; each has a text as long as all before it."""


def layer_keys(boxes: Sequence[IcicleBox], selectable: FilterData) -> list[str | None]:
    """Write the selection of each box of modules: rows in its layer or below it."""
    within: dict[str, list[str]] = {}
    for number, layer in enumerate(selectable.layers()):
        dots = (index for index, letter in enumerate(layer) if letter == ".")
        for end in (*islice(dots, _MAX_PARTS), len(layer)):
            within.setdefault(layer[:end], []).append(str(number))
    keys = {path: f"layer={','.join(numbers)}" for path, numbers in within.items()}
    special = {(): "", (NO_LAYER,): "layer=-1"}  # all, and what is outside of layers
    return [special.get(box.names, keys.get(box.path)) for box in boxes]
