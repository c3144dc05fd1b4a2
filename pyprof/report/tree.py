"""The tree of modules: each with the GPU time of its own rows, and of all within it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from numpy.typing import NDArray

    from pyprof.prof.table import Table

    Mask = NDArray[np.bool_]

ROOT = ""
NO_LAYER = "(outside all layers)"


@dataclass(frozen=True, slots=True)
class Node:
    """A module, or the root of all. Its totals are its own plus those of its children.

    Trees may be of any depth: whatever walks one does so without calling itself.
    """

    name: str
    """The last part of its path, or of a layer that is no path, all of it."""
    self_ns: int
    self_rows: int
    total_ns: int
    rows: int
    children: tuple[Node, ...]
    """The longest first."""

    def walk(self) -> Iterator[tuple[int, Node]]:
        """Give this node and all below it, each before its children, with its depth."""
        left = [(0, self)]
        while left:
            depth, node = left.pop()
            yield depth, node
            left += [(depth + 1, child) for child in reversed(node.children)]

    def __reduce__(self) -> tuple[Any, ...]:
        """Be sent as a list, for pickle's own way is one call a level."""
        return _joined, ([(*_own(node), len(node.children)) for _, node in self.walk()],)


def _own(node: Node) -> tuple[str, int, int, int, int]:
    return node.name, node.self_ns, node.self_rows, node.total_ns, node.rows


def _joined(nodes: list[tuple[Any, ...]]) -> Node:
    """Put the nodes of a walk together again."""
    made: list[Node] = []  # the first child of what comes next is the last
    for name, self_ns, self_rows, total_ns, rows, count in reversed(nodes):
        children = tuple(made.pop() for _ in range(count))
        made.append(Node(name, self_ns, self_rows, total_ns, rows, children))
    return made[0]


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
    root = _Growing()
    for place in np.flatnonzero(count).tolist():
        path = steps(layer.values[place - 1]) if place else ()
        root.at(path or (NO_LAYER,)).add(int(ns[place]), int(count[place]))
    return root.node(ROOT)


def merge(a: Node, b: Node) -> Node:
    """Make two trees one."""
    root = _Growing()
    for tree in (a, b):
        left = [(root, tree)]
        while left:
            place, node = left.pop()
            place.add(node.self_ns, node.self_rows)
            left += [(place.at((child.name,)), child) for child in node.children]
    return root.node(a.name)


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


@dataclass(slots=True)
class _Growing:
    """A node of a tree that is being built."""

    self_ns: int = 0
    self_rows: int = 0
    below: dict[str, _Growing] = field(default_factory=dict)

    def at(self, path: Iterable[str]) -> _Growing:
        """Give the node at the end of a path from here."""
        found = self
        for name in path:
            found = found.below.setdefault(name, _Growing())
        return found

    def add(self, ns: int, rows: int) -> None:
        """Add rows of its own."""
        self.self_ns += ns
        self.self_rows += rows

    def node(self, name: str) -> Node:
        """Finish the tree below: those at the end of a list of all are made first."""
        order = [(name, self)]
        for _, growing in order:
            order += growing.below.items()
        made: dict[int, Node] = {}
        for own, growing in reversed(order):
            children = [made.pop(id(child)) for child in growing.below.values()]
            made[id(growing)] = _finished(own, growing, children)
        return made[id(self)]


def _finished(name: str, own: _Growing, children: list[Node]) -> Node:
    children.sort(key=lambda node: (-node.total_ns, node.name))
    return Node(
        name,
        own.self_ns,
        own.self_rows,
        own.self_ns + sum(child.total_ns for child in children),
        own.self_rows + sum(child.rows for child in children),
        tuple(children),
    )
