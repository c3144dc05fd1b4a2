"""The tree of modules: each with the GPU time of its own rows, and of all within it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from pyprof.answers.summary_answer import NO_LAYER, LayerTime

if TYPE_CHECKING:
    from collections.abc import Sequence

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
        for added in _split_names(layer.values[place - 1] if place else []) or [[NO_LAYER]]:
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


MODULE = re.compile(r"\w+(\.\w+)*")
"""A module's path; any other text is a name that someone gave."""


def layer_path(layers: list[str]) -> tuple[str, ...]:
    """The names from the root to a row's module, given its layers, outermost first.

    A layer that extends the one around it (`decoder`, then `decoder.layers.0`) adds the rest.
    """
    return tuple(part for added in _split_names(layers) for part in added)


def _split_names(layers: list[str]) -> list[list[str]]:
    """The names that each layer adds to those of the one around it; [] if there are none."""
    added: list[list[str]] = []
    around = ""
    for layer in layers:
        if layer == around:
            continue
        within = around and layer.startswith(f"{around}.")
        rest = layer[len(around) + 1 :] if within else layer
        parts = rest.split(".") if MODULE.fullmatch(rest) else [rest]
        added.append([part for part in parts if part])
        around = layer
    return added if any(added) else []


def layer_times(sums: pa.Table, steps: pa.Table | None) -> tuple[LayerTime, ...]:
    """Every layer, each before those inside it, the longest first, given `layer_sums`.

    Layers have their own names: `attention.v2` is one level if it is one layer.
    """
    own = {_names(row["path"]): row for row in sums.to_pylist()}
    own_step_ns: dict[tuple[str, ...], float] = {}
    if steps is not None:
        own_step_ns = {_names(row["path"]): row["step_ns"] for row in steps.to_pylist()}
    below: dict[tuple[str, ...], dict[str, None]] = {}
    for names in own:
        for depth, name in enumerate(names):
            below.setdefault(names[:depth], {})[name] = None

    def inside(names: tuple[str, ...], around: tuple[str, ...], name: str) -> list[LayerTime]:
        """The layer of some names, with those inside it; `name` is what to call it."""
        row = own.get(names, _NOTHING)
        children = below.get(names, {})
        if not row["layers"] and len(children) == 1:  # part of its child's name
            return inside((*names, *children), around, f"{name}.{next(iter(children))}")
        path = (*around, name) if name else around
        parts = {child: inside((*names, child), path, child) for child in children}
        ordered = sorted(parts.items(), key=lambda part: (-part[1][0].time_ns, part[0]))
        tops = [layers[0] for _, layers in ordered]
        step_ns = None if steps is None else own_step_ns.get(names, 0.0)
        layer_time = LayerTime(
            path=path,
            time_ns=row["ns"] + sum(each.time_ns for each in tops),
            own_ns=row["ns"],
            step_ns=None
            if step_ns is None
            else step_ns + sum(each.step_ns or 0.0 for each in tops),
            own_step_ns=step_ns,
            rows=row["rows"] + sum(each.rows for each in tops),
        )
        return [layer_time, *(layer for _, layers in ordered for layer in layers)]

    return tuple(inside((), (), ""))


_NOTHING = {"ns": 0, "rows": 0, "layers": 0}


def _names(path: str) -> tuple[str, ...]:
    return tuple(path.split(_BETWEEN)) if path else ()
