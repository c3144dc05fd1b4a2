"""Rows totalled by a column, and the ops that take most GPU time with what they achieved."""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyprof import schema
from pyprof.analysis.summary.layer_tree import MODULE
from pyprof.answers.summary_answer import LineTotal, OpTime
from pyprof.arrays import MISSING, ratio_if_known
from pyprof.gpu.roofline import NS_PER_S, per_second
from pyprof.prof.columns.explained_columns import ABOVE, above_peak
from pyprof.prof.group import add_up_rows
from pyprof.records.merging import add_up
from pyprof.records.records import DictionaryColumn, encode

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pyprof.arrays import Floats, Int64Array, Mask
    from pyprof.prof.table import Table


@dataclass(frozen=True, slots=True, kw_only=True)
class Total:
    """One group of rows."""

    key: tuple[str | None, ...]
    """Its value in each column; None if the rows have none."""
    calls: int
    """Kernels, copies and so on."""
    time_ns: int
    share: float
    """Share of the summed time of all rows, 0 to 1."""
    flops_per_s: float | None
    """Over the rows whose FLOPs are known, and their helpers; None without such rows, or without
    arithmetic.
    """
    bytes_per_s: float | None


_SUMS = dict.fromkeys(("calls", "ns", "flops", "flops_ns", "bytes", "bytes_ns"), "sum")


def sums(table: Table, names: Sequence[str], rows: Mask | None = None) -> pa.Table:
    """Add up all rows, or those chosen, by some columns of text.

    Returns a row for each group, small enough to send: its keys, and what `_SUMS` names.
    """
    ones = np.broadcast_to(np.int64(1), len(table.duration_ns))
    amounts = chain([("calls", ones), ("ns", table.duration_ns)], _work(table))
    return add_up_rows({name: table.dictionary_array(name) for name in names}, amounts, rows)


def _work(table: Table) -> Iterator[tuple[str, Int64Array | Floats]]:
    """Yield FLOPs and bytes, 0 if unknown, and the time of the rows that they are known of."""
    for name, cost in (("flops", table.costs.flops), ("bytes", table.costs.bytes)):
        # As floats: the FLOPs of some thousand ranks do not fit into 63 bits.
        yield name, np.maximum(cost, 0).astype(float)
        yield f"{name}_ns", table.duration_ns * with_helpers(table, cost >= 0)


def totals(op_sums: pa.Table) -> list[Total]:
    """Each group of some sums, the longest first."""
    names = [name for name in op_sums.column_names if name not in _SUMS]
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


# Times are sums over rows: they add up to the summed GPU time, not to the span.
_FAR_ABOVE = 1.1
"""Share of the roofline; a little above 1, the clock or the peak may be what is off."""

Key: TypeAlias = "tuple[str | None, ...]"

_KEYS = ("op", "dir", "line", "unnamed", "range")
"""What a group has in common; `unnamed` is the kernel of rows that no op names, and `range` the
user's range around them, if neither op nor line is known."""
_LARGEST = ("kernel", "bound", "tc", "reason", "above")
"""For these, a group gets the value that most of its time has."""


@dataclass(frozen=True, slots=True)
class OpSums:
    """Sums over the rows of each op in one direction, called on one line."""

    amounts: pa.Table
    """By `_KEYS`: calls, rows, their time (`ns`), and what `_amounts` adds up."""
    times: pa.Table
    """Time by `_KEYS` and by the values of the columns that `_LARGEST` names."""
    longest: LongestRows
    """By the values of `_KEYS`."""


def op_sums(
    table: Table, rows: Mask | None = None, per_step: Floats | None = None
) -> tuple[OpSums, pa.Table | None]:
    """Sum up the rows (all, or those chosen) by op, direction and source line.

    `per_step` is what each row adds to the time in the mean step. With it, the second table has
    that time, `step_ns`, of each group; it is None without.
    """
    every = np.ones(table.records.rows, bool) if rows is None else rows
    texts = {name: text.dictionary_array() for name, text in _texts(table)}
    amounts = {
        "calls": table.named_call,
        "kernels": np.ones(table.records.rows, np.int64),
        "ns": table.duration_ns,
        **dict(_amounts(table)),
    }
    chosen = pa.table({**texts, **amounts}).filter(pa.array(every))
    groups = add_up(chosen, _KEYS, {**dict.fromkeys(amounts, "sum"), "calls": "count_distinct"})
    times = add_up(chosen, [*_KEYS, *_LARGEST], {"ns": "sum"})
    idx = pa.array(np.flatnonzero(every) + 1)
    longest = longest_rows(chosen.append_column("idx", idx), _KEYS, MAX_ROWS)
    most = groups.sort_by([("ns", "descending")]).slice(0, _MAX_GROUPS)
    kept = LongestRows({key: longest[key] for key in _key_rows(most)}, len(every))
    sums = OpSums(groups, times, kept)
    if per_step is None:
        return sums, None
    in_step = chosen.select(_KEYS).append_column("step_ns", pa.array(per_step[every]))
    return sums, add_up(in_step, _KEYS, {"step_ns": "sum"})


def op_times(sums: OpSums, steps: pa.Table | None) -> tuple[OpTime, ...]:
    """Each op in one direction on one line, the longest first; `steps` is from `op_sums`."""
    whole_ns = max(pc.sum(sums.amounts.column("ns")).as_py() or 0, 1)
    largest = _largest_values(sums.times)
    step_ns: dict[Key, float] = {}
    if steps is not None:
        step_ns = dict(zip(_key_rows(steps), steps.column("step_ns").to_pylist(), strict=True))
    ops = [
        OpTime(
            op=row["op"],
            dir=row["dir"],
            line=row["line"],
            kernel=most.get("kernel", ""),
            calls=row["calls"],
            kernels=row["kernels"],
            time_ns=row["ns"],
            step_ns=None if steps is None else step_ns.get(key, 0.0),
            share=row["ns"] / whole_ns,
            flops_per_s=ratio_if_known(row["flops"] * NS_PER_S, row["flops_ns"]),
            bytes_per_s=ratio_if_known(row["bytes"] * NS_PER_S, row["bytes_ns"]),
            efficiency=ratio_if_known(row["eff_ns"], row["eff_known_ns"]),
            bound=most.get("bound"),
            tc=most.get("tc"),
            why=most.get("reason"),
            above_peak=_above_peak(row, most.get("above")),
            range=row["range"],
            row_ids=sums.longest.row_ids(key),
        )
        for key, row in zip(_key_rows(sums.amounts), sums.amounts.to_pylist(), strict=True)
        for most in [largest.get(key, {})]
    ]  # fmt: skip
    return tuple(sorted(ops, key=_order))


def _key_rows(table: pa.Table) -> Iterator[Key]:
    return zip(*(table.column(name).to_pylist() for name in _KEYS), strict=True)


def _order(op: OpTime) -> tuple[Any, ...]:
    unnamed = op.kernel if op.op is None else ""
    return (-op.time_ns, *(text or "" for text in (op.op, op.dir, op.line, unnamed, op.range)))


def _above_peak(row: Mapping[str, Any], reason: str | None) -> str | None:
    """Why the op is far above the roofline, copies and fills included; None if it is not."""
    if row["roof_ns"] <= _FAR_ABOVE * row["roof_known_ns"]:
        return None
    return (reason or "").removeprefix(ABOVE) or None


def _largest_values(times: pa.Table) -> dict[Key, dict[str, str]]:
    """For each group, the value of each `_LARGEST` column with most time; nulls do not count."""
    largest: dict[Key, dict[str, str]] = {}
    for name in _LARGEST:
        known = times.filter(pc.is_valid(times.column(name)))
        by_value = add_up(known, [*_KEYS, name], {"ns": "sum"})
        ordered = by_value.sort_by([("ns", "ascending"), (name, "descending")])
        for key, text in zip(_key_rows(ordered), ordered.column(name).to_pylist(), strict=True):
            largest.setdefault(key, {})[name] = text  # the last one has most time
    return largest


def line_totals(ops: Sequence[OpTime]) -> tuple[LineTotal, ...]:
    """Total ops, which come longest first, by line; the line with most time comes first."""
    ops_by_line: dict[str | None, list[OpTime]] = {}
    for op in ops:
        ops_by_line.setdefault(op.line, []).append(op)
    totals = [
        LineTotal(
            line=line,
            calls=sum(op.calls for op in on_line),
            time_ns=sum(op.time_ns for op in on_line),
            step_ns=None
            if on_line[0].step_ns is None
            else sum(op.step_ns or 0.0 for op in on_line),
            share=sum(op.share for op in on_line),
            ops=tuple(dict.fromkeys(op.op or op.kernel for op in on_line)),
        )
        for line, on_line in ops_by_line.items()
    ]
    return tuple(sorted(totals, key=lambda total: (-total.time_ns, total.line or "")))


def _texts(table: Table) -> Iterator[tuple[str, DictionaryColumn]]:
    """The columns that rows are grouped by, and those whose largest value a group gets."""
    kernel = _kernel(table)
    op, name, tc = (encode(table.dictionary_array(name)) for name in ("op", "kernel", "tc"))
    classified = tc.matches(lambda value: value != "-")
    yield "op", op
    yield "kernel", name
    yield "unnamed", _keep_texts(op.index < 0, name)
    line = encode(table.dictionary_array("line"))
    ranges = table.own_or_forward("layer").map(_range_name)
    yield "range", _keep_texts((op.index < 0) & (line.index < 0), ranges)
    yield "line", line
    yield "tc", _keep_texts(kernel & classified, tc)
    yield "bound", _keep_texts(kernel, encode(table.dictionary_array("bound")))
    yield "reason", table.costs.why_unknown
    yield "above", above_peak(table, _FAR_ABOVE)
    yield "dir", encode(table.dictionary_array("dir"))


def _range_name(layers: Sequence[str]) -> str | None:
    """The innermost layer; except in a module's path, numbers in it become N."""
    if not layers or MODULE.fullmatch(layers[-1]):
        return layers[-1] if layers else None
    return re.sub(r"\d+", "N", layers[-1])


def _keep_texts(rows: Mask, texts: DictionaryColumn) -> DictionaryColumn:
    return DictionaryColumn(np.where(rows, texts.index, MISSING), texts.values)


def _amounts(table: Table) -> Iterator[tuple[str, Int64Array | Floats]]:
    """Yield the columns to add up, with a value for each row: 0 if it is unknown."""
    yield from _work(table)
    ns, of_roof = table.duration_ns.astype(float), table.roofline.share
    of_kernel = np.where(_kernel(table), of_roof, np.nan)
    for name, share in (("eff", of_kernel), ("roof", of_roof)):
        yield f"{name}_ns", np.nan_to_num(share * ns)
        yield f"{name}_known_ns", ns * with_helpers(table, ~np.isnan(share))


def with_helpers(table: Table, known: Mask) -> Mask:
    """Add the helper kernels of known op calls to the known rows: the op's time includes theirs."""
    costs = table.costs
    is_known = np.zeros(int(costs.call.max(initial=-1)) + 1, bool)
    is_known[costs.call[_kernel(table) & ~costs.helper & known]] = True
    return np.asarray(known | (costs.helper & is_known.take(costs.call)))


def _kernel(table: Table) -> Mask:
    """Find kernels: copies over the bus must not be compared with the GPU's memory bandwidth."""
    return table.records.of_kind(schema.KERNEL, schema.CPU, None)


MAX_ROWS = 3
"""Rows of a group."""
_MAX_GROUPS = 32
"""Groups of a capture, those that take most time."""


@dataclass(frozen=True, slots=True)
class LongestRows:
    """The longest rows of groups, small enough to send."""

    rows: Mapping[Key, tuple[tuple[int, int], ...]]
    """Time (ns) and `idx` of each row, by the key of its group; the longest first."""
    row_count: int
    """Number of rows of the capture: rows of the next one are numbered from there on."""

    def merged(self, other: LongestRows) -> LongestRows:
        """The longest rows of both captures."""
        rows = dict(self.rows)
        for key, theirs in other.rows.items():
            renumbered = ((ns, idx + self.row_count) for ns, idx in theirs)
            both = sorted((*rows.get(key, ()), *renumbered), key=lambda row: (-row[0], row[1]))
            rows[key] = tuple(both[:MAX_ROWS])
        return LongestRows(rows, self.row_count + other.row_count)

    def row_ids(self, key: Key) -> tuple[int, ...]:
        """The `idx` of a group's longest rows; empty if the group takes too little time."""
        return tuple(idx for _, idx in self.rows.get(key, ()))


def longest_rows(
    rows: pa.Table, keys: Sequence[str], count: int
) -> dict[Key, tuple[tuple[int, int], ...]]:
    """Find the time (`ns`) and `idx` of the longest rows of each group, at most `count`."""
    ordered = rows.select([*keys, "ns", "idx"]).sort_by(
        [("ns", "descending"), ("idx", "ascending")]
    )
    grouped = ordered.group_by(keys, use_threads=False).aggregate([("ns", "list"), ("idx", "list")])
    groups = zip(*(grouped.column(name).to_pylist() for name in keys), strict=True)
    firsts = (
        pc.list_slice(grouped.column(name), 0, count).to_pylist()
        for name in ("ns_list", "idx_list")
    )
    return {key: tuple(zip(*row, strict=True)) for key, *row in zip(groups, *firsts, strict=True)}
