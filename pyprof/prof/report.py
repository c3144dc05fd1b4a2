"""A report from end to end: a file in, chosen columns of chosen rows out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import click
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyprof.errors import PyprofError
from pyprof.parse import recordfile
from pyprof.prof import render as renderers
from pyprof.prof.columns import COLUMNS, DEFAULT, Column
from pyprof.prof.group import MEASURES, group
from pyprof.prof.table import Override, Table

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from pyprof.prof.render import Render

_BATCH_ROWS = 1 << 16
_NAMED = 5  # unknowns named on stderr


def columns(names: str | None) -> list[Column] | None:
    """Give the columns that -c names; None where the user named none. Unknown names are misuse."""
    if names is None:
        return None
    asked = [name.strip() for name in names.split(",") if name.strip()]
    if unknown := [name for name in asked if name not in COLUMNS]:
        raise click.BadParameter(
            f"no column {unknown[0]!r}; there are {', '.join(COLUMNS)}", param_hint="'-c'"
        )
    return [COLUMNS[name] for name in asked]


def table(file: str, override: Override) -> Table:
    """Load a file of records or a capture; `override` stands for what is known of its device.

    Raises PyprofError where the file, or a device that the override names, is of no use.
    """
    loaded = Table(recordfile.load(file), override)
    loaded.check_override()
    return loaded


_AGAINST_PEAKS = frozenset({"bound", "eff", "peak"})


def doubts(source: Table, shown: Sequence[Column]) -> tuple[str, ...]:
    """Give what is uncertain about the peaks that the shown columns rest on."""
    return source.doubts if _AGAINST_PEAKS & {column.name for column in shown} else ()


def rows(
    source: Table, asked: list[Column] | None, *, by: str | None, sort: str | None, top: int | None
) -> tuple[list[Column], Iterator[pa.Table]]:
    """Give the columns to show and their values, batch by batch."""
    if by is not None:
        shown, data = group(source, by)
        names = [column.name for column in shown]
        order = _order(sort, names, data, data.num_rows)
        return shown, _batches(data.take(pa.array(order[:top])))
    shown = asked or [COLUMNS[name] for name in DEFAULT.split(",")]
    values = {column.name: column.values(source) for column in shown}
    keys = dict(values)
    if sort and (name := sort.rstrip("-")) in COLUMNS and name not in keys:
        keys[name] = COLUMNS[name].values(source)
    order = _order(sort, [*COLUMNS], pa.table(keys), source.records.rows)
    data = pa.table(values)
    return shown, _batches(
        data if sort is None and top is None else data.take(pa.array(order[:top]))
    )


def _order(sort: str | None, names: Sequence[str], data: pa.Table, count: int) -> np.ndarray:
    if sort is None:
        return np.arange(count)
    name, descending = sort.rstrip("-"), not sort.endswith("-")
    if name not in names:
        known = ", ".join((*MEASURES, *COLUMNS) if "calls" in names else names)
        raise click.BadParameter(
            f"cannot sort by {name!r}; there are {known}", param_hint="'--sort'"
        )
    keys = data.column(name)
    order = "descending" if descending else "ascending"
    index = pc.sort_indices(pa.table({"key": keys, "row": np.arange(count)}),
                            sort_keys=[("key", order), ("row", "ascending")])  # fmt: skip
    found: np.ndarray = index.to_numpy()
    return found


def _batches(data: pa.Table) -> Iterator[pa.Table]:
    for start in range(0, data.num_rows, _BATCH_ROWS):
        yield data.slice(start, _BATCH_ROWS)


def render(*, as_csv: bool, width: int | None) -> Render:
    """Give the writer that the options ask for."""
    if as_csv:
        return renderers.as_csv
    return renderers.in_width(width) if width else renderers.as_text


@dataclass(frozen=True, slots=True)
class Modelled:
    """How much of the GPU time has a cost, and what most of the rest is."""

    percent: float
    text: str


def modelled(source: Table, chosen: NDArray[np.bool_] | None = None) -> Modelled:
    """Say which share of GPU time has a known cost, and the largest unknowns with their share.

    Of all rows, or of those chosen.
    """
    costs, duration = source.costs, source.duration_ns
    unknown = (costs.flops < 0) | ((costs.bytes < 0) & ~costs.helper)
    if chosen is not None:
        unknown, duration = unknown & chosen, duration * chosen
    whole = max(int(duration.sum()), 1)
    percent = 100 * (1 - int(duration[unknown].sum()) / whole)
    text = f"pyprof: cost known for {percent:.1f} % of GPU time"
    if not unknown.any():
        return Modelled(percent, text)
    per_reason = np.bincount(
        costs.reason_of[unknown], weights=duration[unknown], minlength=len(costs.reason)
    )
    calls = np.bincount(costs.reason_of[unknown], minlength=len(costs.reason))
    largest = [place for place in np.argsort(-per_reason, kind="stable") if per_reason[place]][
        :_NAMED
    ]
    named = (
        f"{costs.reason[place]} ({100 * per_reason[place] / whole:.1f} % in {calls[place]})"
        for place in largest
    )
    return Modelled(percent, f"{text}; unknown for {int(unknown.sum())} rows: {', '.join(named)}")


def demand(found: Modelled, percent: float | None) -> None:
    """Raise PyprofError where less of the GPU time has a known cost than is asked for."""
    if percent is not None and found.percent < percent:
        raise PyprofError(
            f"the cost of {found.percent:.1f} % of GPU time is known, less than {percent:g} %; "
            "the unknown ops are named above"
        )
