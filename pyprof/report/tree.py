"""The tree of modules: each with the GPU time of its own rows, and of all within it."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from pyprof.prof.table import Table

    Mask = NDArray[np.bool_]
    Floats = NDArray[np.float64]

ROOT = ""
ROOT_PATH: tuple[str, ...] = ()
NO_LAYER = "(outside all layers)"


@dataclass(frozen=True, slots=True)
class Node:
    """A module, or the root of all. Its totals are its own plus those of its children."""

    name: str
    """The last part of its path, or of a layer that is no path, all of it."""
    self_ns: int
    self_rows: int
    total_ns: int
    rows: int
    children: tuple[Node, ...]
    """The longest first."""
    self_step_ns: float = 0.0
    """What its own rows take in a step, the mean. So is `step_ns`, of its total."""
    step_ns: float = 0.0
    is_layer: bool = True
    """A layer has this name; else it is a part of the names of those below."""

    def walk(self, depth: int = 0) -> Iterator[tuple[int, Node]]:
        """Give this node and all below it, each before its children, with its depth."""
        yield depth, self
        for child in self.children:
            yield from child.walk(depth + 1)


_Own = tuple[int, int, float]
"""Time in ns, number of rows, and time in a step."""


def tree(table: Table, rows: Mask | None = None, per_step: Floats | None = None) -> Node:
    """Build the tree of all rows, or of those chosen; the root's totals are theirs.

    `per_step` is what each row adds to the time in a step, ns; without it, all its time.
    A backward row counts for the layer of its forward call. Layers that extend the one around
    them (`decoder` and then `decoder.layers.0`) hang below it under what they add.
    """
    layer = table.own_or_forward("layer")
    chosen = np.ones(len(layer), bool) if rows is None else rows
    index = layer.index[chosen] + 1  # 0: none
    size = len(layer.values) + 1
    duration = table.duration_ns.astype(float)
    spent = duration if per_step is None else per_step
    ns, step_ns = (np.bincount(index, each[chosen], size) for each in (duration, spent))
    count = np.bincount(index, minlength=size)
    own: dict[tuple[str, ...], _Own] = {}
    named = {ROOT_PATH, (NO_LAYER,)}
    for place in np.flatnonzero(count).tolist():
        layers = layer.values[place - 1] if place else []
        named |= {steps(layers[:length]) for length in range(1, len(layers) + 1)}
        path = steps(layers) or (NO_LAYER,)
        before = own.get(path, (0, 0, 0.0))
        added = (int(ns[place]), int(count[place]), float(step_ns[place]))
        own[path] = (before[0] + added[0], before[1] + added[1], before[2] + added[2])
    return _node(ROOT, (), own, _children(own), named)


def merge(a: Node, b: Node) -> Node:
    """Make two trees one."""
    mine, theirs = ({child.name: child for child in node.children} for node in (a, b))
    children = [
        merge(mine[name], theirs[name])
        if name in mine and name in theirs
        else {**theirs, **mine}[name]
        for name in {**mine, **theirs}
    ]
    children.sort(key=lambda node: (-node.total_ns, node.name))
    return Node(
        a.name,
        a.self_ns + b.self_ns,
        a.self_rows + b.self_rows,
        a.total_ns + b.total_ns,
        a.rows + b.rows,
        tuple(children),
        a.self_step_ns + b.self_step_ns,
        a.step_ns + b.step_ns,
        a.is_layer or b.is_layer,
    )


def outside_steps(node: Node) -> Node:
    """Give the tree of work that is in no step."""
    children = tuple(map(outside_steps, node.children))
    return replace(node, children=children, self_step_ns=0.0, step_ns=0.0)


def named(node: Node) -> Node:
    """Give layers their own names: what is no layer, and has one below it alone, is part of that.

    `attention.v2` is one node then, as it is one layer, and not two below each other.
    """
    children = tuple(map(named, node.children))
    if not node.is_layer and len(children) == 1:
        return replace(children[0], name=f"{node.name}.{children[0].name}")
    return replace(node, children=children)


_MODULE = re.compile(r"\w+(\.\w+)*")
"""A module's path; any other text is a name that someone gave."""


def steps(layers: list[str]) -> tuple[str, ...]:
    """Turn a row's layers, outermost first, into the steps from the root to its module."""
    path: list[str] = []
    around = ""
    for layer in layers:
        if layer == around:
            continue
        within = around and layer.startswith(f"{around}.")
        added = layer[len(around) + 1 :] if within else layer
        path += added.split(".") if _MODULE.fullmatch(added) else [added]
        around = layer
    return tuple(part for part in path if part)


def _children(own: dict[tuple[str, ...], _Own]) -> dict[tuple[str, ...], list[str]]:
    found: dict[tuple[str, ...], dict[str, None]] = {}
    for path in own:
        for depth, name in enumerate(path):
            found.setdefault(path[:depth], {})[name] = None
    return {path: list(names) for path, names in found.items()}


def _node(
    name: str,
    path: tuple[str, ...],
    own: dict[tuple[str, ...], _Own],
    below: dict[tuple[str, ...], list[str]],
    layers: set[tuple[str, ...]],
) -> Node:
    children = [_node(child, (*path, child), own, below, layers) for child in below.get(path, [])]
    children.sort(key=lambda node: (-node.total_ns, node.name))
    self_ns, self_rows, step_ns = own.get(path, (0, 0, 0.0))
    return Node(
        name,
        self_ns,
        self_rows,
        self_ns + sum(child.total_ns for child in children),
        self_rows + sum(child.rows for child in children),
        tuple(children),
        step_ns,
        step_ns + sum(child.step_ns for child in children),
        path in layers,
    )
