"""Rows totalled by a column: how many, how long, and what is known of their work."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyprof import schema
from pyprof.arrays import MISSING
from pyprof.gpu.roofline import NS_PER_S, per_second
from pyprof.prof.columns.explained_columns import ABOVE, above_peak
from pyprof.prof.group import add_up_rows, distinct_calls
from pyprof.records.merging import add_up
from pyprof.records.records import DictionaryColumn, combinations, encode
from pyprof.records.records import totals as exact_totals

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from pyprof.arrays import Floats, Int64Array, IntArray, Mask
    from pyprof.prof.table import Table


@dataclass(frozen=True, slots=True)
class Total:
    """One group of rows."""

    key: tuple[str | None, ...]
    """Its value of each column; None where the rows have none."""
    calls: int
    """Kernels, copies and so on."""
    time_ns: int
    share: float
    """Of the summed time of all rows, 0 to 1."""
    flops_per_s: float | None
    """Over the rows whose FLOPs are known, and their helpers; None where none is, or none does
    arithmetic."""
    bytes_per_s: float | None


_SUMS = dict.fromkeys(("calls", "ns", "flops", "flops_ns", "bytes", "bytes_ns"), "sum")


def sums(table: Table, names: Sequence[str], rows: NDArray[np.bool_] | None = None) -> pa.Table:
    """Add up all rows, or those chosen, by some columns of text.

    Gives a row for each group, small enough to send: its keys, and what `_SUMS` names.
    """
    return add_up_rows({name: table.numbered(name) for name in names}, _numbers(table), rows)


def _numbers(table: Table) -> Iterator[tuple[str, Int64Array | Floats]]:
    """Give what `_SUMS` names of each row, one after the other."""
    yield "calls", np.broadcast_to(np.int64(1), len(table.duration_ns))
    yield "ns", table.duration_ns
    for name, cost in (("flops", table.costs.flops), ("bytes", table.costs.bytes)):
        # As floats: the FLOPs of some thousand ranks are more than 63 bits hold.
        yield name, np.maximum(cost, 0).astype(float)
        yield f"{name}_ns", table.duration_ns * with_helpers(table, cost >= 0)


def merge_totals(a: pa.Table, b: pa.Table) -> pa.Table:
    """Make the sums of two captures those of both."""
    return add_up(pa.concat_tables([a, b]), _keys(a), _SUMS)


def _keys(sums: pa.Table) -> list[str]:
    return [name for name in sums.column_names if name not in _SUMS]


def totals(op_sums: pa.Table) -> list[Total]:
    """Give each group of some sums, the longest first."""
    names = _keys(op_sums)
    order = [("ns", "descending"), *((name, "ascending") for name in names)]
    total_ns = max(int(pc.sum(op_sums.column("ns")).as_py() or 0), 1)
    return [
        Total(
            key=tuple(row[name] for name in names),
            calls=row["calls"],
            time_ns=row["ns"],
            share=row["ns"] / total_ns,
            flops_per_s=per_second(row["flops"] or None, row["flops_ns"]),
            bytes_per_s=per_second(row["bytes"] or None, row["bytes_ns"]),
        )
        for row in op_sums.sort_by(order).to_pylist()
    ]


# The ops that take most GPU time, each with what it achieved: a line per op, direction and line.
#
# Times are sums over rows: they add up to the summed GPU time, not to the span.


_FAR_ABOVE = 1.1
"""Share of the roofline; a little above 1, the clock or the peak may be what is off."""

_KEYS = ("op", "dir", "line", "unnamed")
"""What a group has in common; `unnamed` is the kernel of rows that no op names."""
_TOPOPS_SUMS = ("ns", "flops", "flops_ns", "bytes", "bytes_ns", "eff_ns", "eff_known_ns",
                "roof_ns", "roof_known_ns")  # fmt: skip
_LARGEST = ("kernel", "bound", "tc", "reason", "above")
"""Of these, a group gets what most of its time has."""


@dataclass(frozen=True, slots=True)
class OpTotals:
    """One op in one direction, called on one line: sums over its rows. None where not known."""

    op: str | None
    """None where nothing names it; then `kernel` does: rows of other kernels are apart."""
    dir: str | None
    line: str | None
    unnamed: str | None
    """The kernel, where nothing names the op."""
    calls: int
    kernels: int
    whole_ns: int
    """The summed GPU time of all ops."""
    sums: Mapping[str, float]
    """Of what `_SUMS` names; `flops_ns` is the time of the rows whose FLOPs are known."""
    time_by: Mapping[str, Mapping[str, int]]
    """GPU time in ns by each value of what `_LARGEST` names."""
    step_ns: float = 0.0
    """The GPU time in a step, the mean; all of it where no steps are known."""

    @property
    def total_ns(self) -> int:
        """The summed GPU time."""
        return int(self.sums["ns"])

    @property
    def share(self) -> float:
        """Share of the summed GPU time of all ops, 0 to 1."""
        return self.total_ns / max(self.whole_ns, 1)

    @property
    def flops_per_s(self) -> float | None:
        """Rate over the time of the rows whose FLOPs are known."""
        return _over(self.sums["flops"] * NS_PER_S, self.sums["flops_ns"])

    @property
    def bytes_per_s(self) -> float | None:
        """Rate over the time of the rows whose bytes are known."""
        return _over(self.sums["bytes"] * NS_PER_S, self.sums["bytes_ns"])

    @property
    def efficiency(self) -> float | None:
        """Share of the roofline, weighed by time, over the rows for which it is known."""
        return _over(self.sums["eff_ns"], self.sums["eff_known_ns"])

    @property
    def kernel(self) -> str:
        """The kernel with most time."""
        return _largest(self.time_by["kernel"]) or ""

    @property
    def bound(self) -> str | None:
        """What limits most of the time: compute, memory or latency."""
        return _largest(self.time_by["bound"])

    @property
    def tc(self) -> str | None:
        """Tensor Cores, for most of the time that could use them: 1, 0, ?; None: none could."""
        return _largest(self.time_by["tc"])

    @property
    def why(self) -> str | None:
        """Why the cost of most of its rows of unknown cost is unknown; None: all are known."""
        return _largest(self.time_by["reason"])

    @property
    def above_peak(self) -> str | None:
        """Why it is far above the roofline, copies and fills included; None if it is not."""
        if self.sums["roof_ns"] <= _FAR_ABOVE * self.sums["roof_known_ns"]:
            return None
        return (_largest(self.time_by["above"]) or "").removeprefix(ABOVE) or None


def _over(part: float, total: float) -> float | None:
    return part / total if total else None


def _largest(time: Mapping[str, int]) -> str | None:
    return min(time, key=lambda name: (-time[name], name), default=None)


def top_ops(
    table: Table, rows: Mask | None = None, per_step: Floats | None = None
) -> list[OpTotals]:
    """Total the rows (all, or those chosen) by op, direction and source line, the longest first.

    `per_step` is what each row adds to the time in a step, ns; without it, all its time.
    """
    chosen = slice(None) if rows is None else np.flatnonzero(rows)
    texts = {
        name: DictionaryColumn(text.index[chosen], text.values) for name, text in _texts(table)
    }
    call, ns = table.named_call[chosen], table.duration_ns[chosen]
    first, cell = combinations(*(texts[name].index for name in (*_KEYS[:-1], *_LARGEST)))
    cells = {name: text.take(first) for name, text in texts.items()}
    first, group_of_cell = combinations(*(cells[name].index for name in _KEYS))
    group, count = group_of_cell[cell], len(first)
    cell_ns = exact_totals(cell, ns, len(group_of_cell)).tolist()
    times = {name: _times(cells[name], group_of_cell, cell_ns, count) for name in _LARGEST}
    sums: dict[str, list[Any]] = {"ns": exact_totals(group, ns, count).tolist()}
    for name, amount in _amounts(table, per_step):
        sums[name] = np.bincount(group, amount[chosen], count).tolist()
    sums["calls"] = distinct_calls(group, call, count).tolist()
    sums["kernels"] = np.bincount(group, minlength=count).tolist()
    whole_ns = sum(cell_ns)
    return in_order(
        OpTotals(
            cells["op"].at(cell),
            cells["dir"].at(cell),
            cells["line"].at(cell),
            cells["unnamed"].at(cell),
            calls=sums["calls"][place],
            kernels=sums["kernels"][place],
            whole_ns=whole_ns,
            sums={name: sums[name][place] for name in _TOPOPS_SUMS},
            time_by={name: times[name][place] for name in _LARGEST},
            step_ns=sums["step_ns"][place],
        )
        for place, cell in enumerate(first.tolist())
    )


def in_order(ops: Iterable[OpTotals]) -> list[OpTotals]:
    """Sort, the longest first."""
    return sorted(ops, key=lambda op: (-op.total_ns, *(text or "" for text in _key(op))))


def merge_op_totals(a: Sequence[OpTotals], b: Sequence[OpTotals]) -> list[OpTotals]:
    """Make the totals of two sets of rows those of both."""
    total_ns = max((op.whole_ns for op in a), default=0) + max((op.whole_ns for op in b), default=0)
    total_by_key: dict[tuple[str | None, ...], OpTotals] = {}
    for op in (*a, *b):
        other = total_by_key.get(_key(op))
        total_by_key[_key(op)] = replace(
            op if other is None else _plus(other, op), whole_ns=total_ns
        )
    return in_order(total_by_key.values())


def _key(op: OpTotals) -> tuple[str | None, ...]:
    return op.op, op.dir, op.line, op.unnamed


def _plus(a: OpTotals, b: OpTotals) -> OpTotals:
    return replace(
        a,
        calls=a.calls + b.calls,
        kernels=a.kernels + b.kernels,
        sums={name: a.sums[name] + b.sums[name] for name in _TOPOPS_SUMS},
        time_by={
            name: {value: a.time_by[name].get(value, 0) + b.time_by[name].get(value, 0)
                   for value in {**a.time_by[name], **b.time_by[name]}}
            for name in _LARGEST
        },
        step_ns=a.step_ns + b.step_ns,
    )  # fmt: skip


def _texts(table: Table) -> Iterator[tuple[str, DictionaryColumn]]:
    """Give what rows are grouped by, and what they are asked for."""
    costs, kernel = table.costs, _kernel(table)
    op, name, tc = (encode(table.numbered(name)) for name in ("op", "kernel", "tc"))
    classified = np.array([*(value != "-" for value in tc.values), False]).take(tc.index)
    unknown = (costs.flops < 0) | ((costs.bytes < 0) & ~costs.helper)
    yield "op", op
    yield "kernel", name
    yield "unnamed", _where(op.index < 0, name)
    yield "tc", _where(kernel & classified, tc)
    yield "bound", _where(kernel, encode(table.numbered("bound")))
    yield "reason", _where(unknown, DictionaryColumn(costs.reason_of, costs.reason))
    yield "above", above_peak(table, _FAR_ABOVE)
    yield from ((name, encode(table.numbered(name))) for name in ("dir", "line"))


def _where(rows: Mask, texts: DictionaryColumn) -> DictionaryColumn:
    return DictionaryColumn(np.where(rows, texts.index, MISSING), texts.values)


def _amounts(table: Table, per_step: Floats | None) -> Iterator[tuple[str, Floats]]:
    """Give what is added up of each row, one after the other; 0 where it is not known."""
    costs, ns = table.costs, table.duration_ns.astype(float)
    yield "step_ns", ns if per_step is None else per_step
    yield "flops", np.maximum(costs.flops, 0).astype(float)
    yield "flops_ns", ns * (costs.flops >= 0)
    yield "bytes", np.maximum(costs.bytes, 0).astype(float)
    yield "bytes_ns", ns * with_helpers(table, costs.bytes >= 0)
    share = np.where(_kernel(table), table.roofline.share, np.nan)
    yield "eff_ns", np.nan_to_num(share * ns)
    yield "eff_known_ns", ns * with_helpers(table, ~np.isnan(share))
    share = table.roofline.share
    yield "roof_ns", np.nan_to_num(share * ns)
    yield "roof_known_ns", ns * with_helpers(table, ~np.isnan(share))


def with_helpers(table: Table, known: Mask) -> Mask:
    """Count helpers among the known rows, if their call is: their time is part of the op's."""
    costs = table.costs
    is_known = np.zeros(int(costs.call.max(initial=-1)) + 1, bool)
    is_known[costs.call[_kernel(table) & ~costs.helper & known]] = True
    return np.asarray(known | (costs.helper & is_known.take(costs.call)))


def _kernel(table: Table) -> Mask:
    """Find kernels: copies over the bus are not to be measured against the GPU's memory."""
    kind = table.records.dictionary("kind")
    kernels = {schema.KINDS[schema.KERNEL], schema.KINDS[schema.CPU]}
    return np.array([*(name in kernels for name in kind.values), True]).take(kind.index)


def _times(
    values: DictionaryColumn, group: IntArray, ns: Sequence[int], count: int
) -> list[dict[str, int]]:
    """Sum the time of each group by a column's values, given that of cells; nulls do not count."""
    times: list[dict[str, int]] = [{} for _ in range(count)]
    for place, value, time in zip(group.tolist(), values.index.tolist(), ns, strict=True):
        if value != MISSING:
            text = values.values[value]
            times[place][text] = times[place].get(text, 0) + time
    return times
