"""The tree of modules: each with the GPU time of its own rows, and of all within it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from pyprof.prof.table import Table

    Mask = NDArray[np.bool_]

ROOT = ""
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

    def walk(self, depth: int = 0) -> Iterator[tuple[int, Node]]:
        """Give this node and all below it, each before its children, with its depth."""
        yield depth, self
        for child in self.children:
            yield from child.walk(depth + 1)


def tree(table: Table, rows: Mask | None = None) -> Node:
    """Build the tree of all rows, or of those chosen; the root's totals are theirs.

    A backward row counts for the layer of its forward call. Layers that extend the one around
    them (`decoder` and then `decoder.layers.0`) hang below it under what they add.
    """
    layer = table.own_or_forward("layer")
    chosen = np.ones(len(layer), bool) if rows is None else rows
    index = layer.index[chosen] + 1  # 0: none
    size = len(layer.values) + 1
    ns = np.bincount(index, weights=table.duration_ns[chosen].astype(float), minlength=size)
    count = np.bincount(index, minlength=size)
    own: dict[tuple[str, ...], tuple[int, int]] = {}
    for place in np.flatnonzero(count).tolist():
        path = steps(layer.values[place - 1]) if place else ()
        before = own.get(path or (NO_LAYER,), (0, 0))
        added = (int(ns[place]), int(count[place]))
        own[path or (NO_LAYER,)] = (before[0] + added[0], before[1] + added[1])
    return _node(ROOT, (), own, _children(own))


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
    )


def steps(layers: list[str]) -> tuple[str, ...]:
    """Turn a row's layers, outermost first, into the steps from the root to its module."""
    path: list[str] = []
    around = ""
    for layer in layers:
        if layer == around:
            continue
        within = around and layer.startswith(f"{around}.")
        path += (layer[len(around) + 1 :] if within else layer).split(".")
        around = layer
    return tuple(part for part in path if part)


def _children(own: dict[tuple[str, ...], tuple[int, int]]) -> dict[tuple[str, ...], list[str]]:
    found: dict[tuple[str, ...], dict[str, None]] = {}
    for path in own:
        for depth, name in enumerate(path):
            found.setdefault(path[:depth], {})[name] = None
    return {path: list(names) for path, names in found.items()}


def _node(
    name: str,
    path: tuple[str, ...],
    own: dict[tuple[str, ...], tuple[int, int]],
    below: dict[tuple[str, ...], list[str]],
) -> Node:
    children = [_node(child, (*path, child), own, below) for child in below.get(path, [])]
    children.sort(key=lambda node: (-node.total_ns, node.name))
    self_ns, self_rows = own.get(path, (0, 0))
    return Node(
        name,
        self_ns,
        self_rows,
        self_ns + sum(child.total_ns for child in children),
        self_rows + sum(child.rows for child in children),
        tuple(children),
    )
