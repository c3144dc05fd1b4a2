"""The tree of modules: each with the GPU time of its own rows, and of all within it."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from pyprof.arrays import Floats, Mask
    from pyprof.prof.table import Table


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
    self_step_ns: float = 0.0
    """What its own rows take in a step, the mean. So is `step_ns`, of its total."""
    step_ns: float = 0.0
    is_layer: bool = True
    """A layer has this name; else it is a part of the names of those below."""

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


def _own(node: Node) -> tuple[Any, ...]:
    return (
        node.name, node.self_ns, node.self_rows, node.total_ns, node.rows,
        node.self_step_ns, node.step_ns, node.is_layer,
    )  # fmt: skip


def _joined(nodes: list[tuple[Any, ...]]) -> Node:
    """Put the nodes of a walk together again."""
    finished: list[Node] = []  # the first child of what comes next is the last
    for (
        name,
        self_ns,
        self_rows,
        total_ns,
        rows,
        self_step_ns,
        step_ns,
        is_layer,
        count,
    ) in reversed(nodes):
        children = tuple(finished.pop() for _ in range(count))
        own = (self_ns, self_rows, total_ns, rows)
        finished.append(Node(name, *own, children, self_step_ns, step_ns, is_layer))
    return finished[0]


def _rebuilt(node: Node, change: Callable[[Node, tuple[Node, ...]], Node]) -> Node:
    """Change every node of a tree, given its changed children, the innermost first."""
    rebuilt: list[Node] = []
    for _, each in reversed(list(node.walk())):
        children = tuple(rebuilt.pop() for _ in each.children)
        rebuilt.append(change(each, children))
    return rebuilt[0]


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
    root = _Growing(is_layer=True)
    for place in np.flatnonzero(count).tolist():
        layers = layer.values[place - 1] if place else []
        node = root
        for added in (*_added(layers), *([] if steps(layers) else [[NO_LAYER]])):
            node = node.at(added)
            node.is_layer = True
        node.add(int(ns[place]), int(count[place]), float(step_ns[place]))
    return root.node(ROOT)


def merge_trees(a: Node, b: Node) -> Node:
    """Make two trees one."""
    root = _Growing()
    for tree in (a, b):
        left = [(root, tree)]
        while left:
            place, node = left.pop()
            place.add(node.self_ns, node.self_rows, node.self_step_ns)
            place.is_layer |= node.is_layer
            left += [(place.at((child.name,)), child) for child in node.children]
    return root.node(a.name)


def outside_steps(node: Node) -> Node:
    """Give the tree of work that is in no step."""
    return _rebuilt(
        node,
        lambda each, children: replace(each, children=children, self_step_ns=0.0, step_ns=0.0),
    )


def named(node: Node) -> Node:
    """Give layers their own names: what is no layer, and has one below it alone, is part of that.

    `attention.v2` is one node then, as it is one layer, and not two below each other.
    """
    return _rebuilt(node, _named)


def _named(node: Node, children: tuple[Node, ...]) -> Node:
    if not node.is_layer and len(children) == 1:
        return replace(children[0], name=f"{node.name}.{children[0].name}")
    return replace(node, children=children)


_MODULE = re.compile(r"\w+(\.\w+)*")
"""A module's path; any other text is a name that someone gave."""


def steps(layers: list[str]) -> tuple[str, ...]:
    """Turn a row's layers, outermost first, into the steps from the root to its module."""
    return tuple(part for added in _added(layers) for part in added)


def _added(layers: list[str]) -> Iterator[list[str]]:
    """Give the steps that each layer adds to those of the one around it."""
    around = ""
    for layer in layers:
        if layer == around:
            continue
        within = around and layer.startswith(f"{around}.")
        added = layer[len(around) + 1 :] if within else layer
        parts = added.split(".") if _MODULE.fullmatch(added) else [added]
        yield [part for part in parts if part]
        around = layer


@dataclass(slots=True)
class _Growing:
    """A node of a tree that is being built."""

    self_ns: int = 0
    self_rows: int = 0
    self_step_ns: float = 0.0
    is_layer: bool = False
    below: dict[str, _Growing] = field(default_factory=dict)

    def at(self, path: Iterable[str]) -> _Growing:
        """Give the node at the end of a path from here."""
        node = self
        for name in path:
            node = node.below.setdefault(name, _Growing())
        return node

    def add(self, ns: int, rows: int, step_ns: float) -> None:
        """Add rows of its own."""
        self.self_ns += ns
        self.self_rows += rows
        self.self_step_ns += step_ns

    def node(self, name: str) -> Node:
        """Finish the tree below: those at the end of a list of all are made first."""
        order = [(name, self)]
        for _, growing in order:
            order += growing.below.items()
        finished: dict[int, Node] = {}
        for own, growing in reversed(order):
            children = [finished.pop(id(child)) for child in growing.below.values()]
            finished[id(growing)] = _finished(own, growing, children)
        return finished[id(self)]


def _finished(name: str, own: _Growing, children: list[Node]) -> Node:
    children.sort(key=lambda node: (-node.total_ns, node.name))
    return Node(
        name,
        own.self_ns,
        own.self_rows,
        own.self_ns + sum(child.total_ns for child in children),
        own.self_rows + sum(child.rows for child in children),
        tuple(children),
        own.self_step_ns,
        own.self_step_ns + sum(child.step_ns for child in children),
        own.is_layer,
    )
