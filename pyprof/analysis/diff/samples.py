"""Times of single steps and ranks, and kernels, shapes and types of each key's rows.

Small enough to send, and additive: the samples of several captures make one side of a comparison.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from pyprof.analysis.diff.keys import KEYS
from pyprof.records.merging import add_up, merged_by, texts_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyprof.analysis.time.steps import Steps
    from pyprof.arrays import Floats, Mask
    from pyprof.prof.table import Table

TRAITS = ("kernel", "shape", "dtype")
"""What may differ between the captures for the same key."""
TRIED = "tried"


def _add_by_step(a: pa.Table, b: pa.Table) -> pa.Table:
    """Add the numbers, which are floats, of rows with the same keys and step."""
    both = pa.concat_tables([texts_of(a), texts_of(b)])
    sums = {each.name: "sum" for each in both.schema if pa.types.is_floating(each.type)}
    return add_up(both, [name for name in both.column_names if name not in sums], sums)


@dataclass(frozen=True, slots=True, kw_only=True)
class StepSamples:
    """Sums over the rows of each counted step, added up over ranks."""

    by_key: pa.Table = merged_by(_add_by_step)
    """Keys, `step`, `ns`. As there are many, keys may be dictionaries of distinct texts."""
    steps: pa.Table = merged_by(_add_by_step)
    """`step`, and its `rows`, known `flops` and `bytes`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Samples:
    """Sums of time, in ns, by key and rank, and by key and traits."""

    ranks: tuple[pa.Table, ...]
    """For each rank: keys, time of all rows (`ns`), and per counted step (`step_ns`)."""
    traits: pa.Table
    """Keys, traits, whether rows were `tried` by autotuning, and the time of all rows (`ns`)."""
    resolution_ns: int = merged_by(min)
    """The resolution of the clock: times are multiples of it."""


def samples(
    table: Table,
    names: Sequence[str],
    loop_steps: Steps,
    counted: tuple[int, int] | None,
    rows: Mask | None,
) -> tuple[Samples, StepSamples]:
    """Take the samples of a capture: of all rows, or those chosen, and of its `counted` steps."""
    chosen = np.ones(table.records.rows, bool) if rows is None else rows
    no_rows = np.zeros(len(chosen), bool)
    inside: Mask = no_rows if counted is None else np.asarray(loop_steps.rows(counted))
    keys = {name: KEYS[name](table) for name in names}
    traits = {trait(name): KEYS[name](table) for name in TRAITS}
    ns, step = table.duration_ns.astype(float), loop_steps.of_row.astype(np.int32)
    step_ns = np.where(inside, ns, 0) / (counted[1] - counted[0] if counted else 1)
    pid = table.records.numpy("pid")
    of_rank = {"ns": ns * chosen, "step_ns": step_ns}
    ranks = [
        texts_of(_sums(keys, of_rank, (chosen | inside) & (pid == number)))
        for number in np.unique(pid)
    ]
    tried = {TRIED: table.costs.autotuning}
    costs = {name: np.maximum(getattr(table.costs, name), 0.0) for name in ("flops", "bytes")}
    return Samples(
        ranks=tuple(ranks),
        traits=texts_of(_sums({**keys, **traits, **tried}, {"ns": ns}, chosen)),
        resolution_ns=_resolution_ns(table, chosen),
    ), StepSamples(
        by_key=_sums({**keys, "step": step}, {"ns": ns}, inside),
        steps=_sums({"step": step}, {"rows": np.ones(len(ns)), **costs}, inside),
    )


def _sums(keys: Mapping[str, Any], values: Mapping[str, Floats], chosen: Mask) -> pa.Table:
    """Sum values of the chosen rows by their keys; dictionaries stay such."""
    rows = pa.table({**keys, **values}).filter(pa.array(chosen))
    sums = rows.group_by([*keys], use_threads=False).aggregate([(name, "sum") for name in values])
    summed = [f"{name}_sum" for name in values]
    return sums.select([*keys, *summed]).rename_columns([*keys, *values])


_COARSEST_NS = 1000
"""Old traces of torch have whole microseconds; a larger divisor is chance, not the clock."""


def _resolution_ns(table: Table, chosen: Mask) -> int:
    """Find what durations, and times from start to start, are multiples of; 0 without rows."""
    rows = np.flatnonzero(table.timed & chosen)
    common = int(np.gcd.reduce(table.duration_ns[rows])) if len(rows) else 0
    if len(rows) and "start" in table.records.columns:
        start = table.records.numpy("start")[rows]
        common = int(np.gcd(common, np.gcd.reduce(start - start[0])))
    return min(common, _COARSEST_NS)


def trait(name: str) -> str:
    """Name the column of a trait; the plain name may be that of a key."""
    return f"{name} of rows"
