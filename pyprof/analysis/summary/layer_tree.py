"""The tree of modules: each with the GPU time of its own rows, and of all within it."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from pyprof.answers.summary_answer import NO_LAYER, LayerTime

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pyprof.arrays import Floats, Mask
    from pyprof.prof.table import Table

MAX_DEPTH = 256
"""Levels of the tree; the names of deeper ones are joined."""
_BETWEEN = "\0"
"""Separates the names of a path in the tables of sums."""


def layer_sums(
    table: Table, rows: Mask | None = None, per_step: Floats | None = None
) -> tuple[pa.Table, pa.Table | None]:
    """Sum up all rows, or those chosen, by the path of their layer.

    The first table has time (`ns`), `rows`, and `layers`, which is above 0 if a layer has exactly
    this path, and 0 if it is only a part of the paths of others. The second has the time in the
    mean step, `step_ns`, to which each row adds its `per_step`; None without that. A backward row
    counts for the layer of its forward call.
    """
    layer = table.own_or_forward("layer")
    chosen = np.ones(len(layer), bool) if rows is None else rows
    index = layer.index[chosen] + 1  # 0: none
    size = len(layer.values) + 1
    ns = np.bincount(index, table.duration_ns[chosen].astype(float), size)
    step_ns = np.zeros(size) if per_step is None else np.bincount(index, per_step[chosen], size)
    count = np.bincount(index, minlength=size)
    sums: dict[str, list[float]] = {"": [0, 0, 1, 0.0]}
    for place in np.flatnonzero(count).tolist():
        path: tuple[str, ...] = ()
        for added in _added(layer.values[place - 1] if place else []) or [[NO_LAYER]]:
            path = (*path, *added)
            sums.setdefault(_key(path), [0, 0, 0, 0.0])[2] = 1
        own = sums[_key(path)]
        own[0] += int(ns[place])
        own[1] += int(count[place])
        own[3] += float(step_ns[place])
    keys = {"path": pa.array([*sums], pa.string())}
    amounts = zip(("ns", "rows", "layers"), zip(*sums.values(), strict=True), strict=False)
    columns = {name: pa.array(each, pa.int64()) for name, each in amounts}
    in_step = pa.array([each[3] for each in sums.values()], pa.float64())
    return (
        pa.table({**keys, **columns}),
        None if per_step is None else pa.table({**keys, "step_ns": in_step}),
    )


def _key(path: Sequence[str]) -> str:
    parts = [*path[: MAX_DEPTH - 1], ".".join(path[MAX_DEPTH - 1 :])]
    return _BETWEEN.join(part.replace(_BETWEEN, " ") for part in parts if part)


_MODULE = re.compile(r"\w+(\.\w+)*")
"""A module's path; any other text is a name that someone gave."""


def layer_path(layers: list[str]) -> tuple[str, ...]:
    """The names from the root to a row's module, given its layers, outermost first.

    A layer that extends the one around it (`decoder`, then `decoder.layers.0`) adds the rest.
    """
    return tuple(part for added in _added(layers) for part in added)


def _added(layers: list[str]) -> list[list[str]]:
    """The names that each layer adds to those of the one around it; [] if there are none."""
    added: list[list[str]] = []
    around = ""
    for layer in layers:
        if layer == around:
            continue
        within = around and layer.startswith(f"{around}.")
        rest = layer[len(around) + 1 :] if within else layer
        parts = rest.split(".") if _MODULE.fullmatch(rest) else [rest]
        added.append([part for part in parts if part])
        around = layer
    return added if any(added) else []


@dataclass(slots=True, kw_only=True)
class _Node:
    """A node of the tree while it is built."""

    own_ns: int = 0
    own_rows: int = 0
    own_step_ns: float = 0.0
    is_layer: bool = False
    below: dict[str, _Node] = field(default_factory=dict)
    time_ns: int = 0
    rows: int = 0
    step_ns: float = 0.0

    def at(self, path: str) -> _Node:
        node = self
        for name in path.split(_BETWEEN) if path else ():
            node = node.below.setdefault(name, _Node())
        return node

    def finish(self) -> None:
        """Set the totals and order what is below, the most time first."""
        for child in self.below.values():
            child.finish()
        self.below = dict(
            sorted(self.below.items(), key=lambda entry: (-entry[1].time_ns, entry[0]))
        )
        self.time_ns = self.own_ns + sum(child.time_ns for child in self.below.values())
        self.rows = self.own_rows + sum(child.rows for child in self.below.values())
        self.step_ns = self.own_step_ns + sum(child.step_ns for child in self.below.values())

    def walk(
        self, path: tuple[str, ...], name: str = ""
    ) -> Iterator[tuple[tuple[str, ...], _Node]]:
        """This node and those below, each before its children, with their paths.

        A node that is no layer and has a single child becomes a part of the child's name.
        """
        if not self.is_layer and len(self.below) == 1:
            ((below, child),) = self.below.items()
            yield from child.walk(path, f"{name}.{below}")
            return
        own = (*path, name) if name else path
        yield own, self
        for below, child in self.below.items():
            yield from child.walk(own, below)


def layer_times(sums: pa.Table, steps: pa.Table | None) -> tuple[LayerTime, ...]:
    """Every layer, each before those inside it, the most time first, given `layer_sums`.

    Layers have their own names: `attention.v2` is one level if it is one layer.
    """
    root = _Node()
    for row in sums.to_pylist():
        node = root.at(row["path"])
        node.own_ns, node.own_rows = row["ns"], row["rows"]
        node.is_layer = row["layers"] > 0
    for row in steps.to_pylist() if steps is not None else ():
        root.at(row["path"]).own_step_ns = row["step_ns"]
    root.finish()
    stepped = steps is not None
    return tuple(
        LayerTime(
            path=path,
            time_ns=node.time_ns,
            own_ns=node.own_ns,
            step_ns=node.step_ns if stepped else None,
            own_step_ns=node.own_step_ns if stepped else None,
            rows=node.rows,
        )
        for path, node in root.walk(())
    )
