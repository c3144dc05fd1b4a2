"""A report from end to end: a file in, chosen columns of chosen rows out."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import click
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyprof.analysis.memory.memory_columns import with_memory
from pyprof.answers import Rows
from pyprof.answers.parts import known_cost
from pyprof.answers.prof_answer import ColumnMeaning, Prof
from pyprof.errors import PyprofError
from pyprof.prof import group, params, where
from pyprof.prof.columns import json_columns
from pyprof.prof.columns.standard import COLUMNS, DEFAULT, Column
from pyprof.prof.coverage import Coverage, cost_coverage, is_kernel, sum_coverage
from pyprof.prof.group import Counts, counts
from pyprof.records.merging import known_in_both, merge_sums, merge_unique
from pyprof.records.records import encode, one_chunk
from pyprof.suggestions import suggestion

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pyprof.answers.memory_answer import DeviceMemory
    from pyprof.inputs.source import Source
    from pyprof.prof.table import Table
    from pyprof.prof.where import Condition

_BATCH_ROWS = 1 << 16


def columns(names: str | None, usual: Sequence[str] = (), by: str | None = None) -> tuple[str, ...]:
    """Parse the names of `-c`; by default the usual ones, or () for groups.

    `usual` defaults to those of `prof` in a pipe. Raises click.BadParameter for an unknown name.
    """
    asked = [name.strip() for name in (names or "").split(",") if name.strip()]
    if by is None:
        offered = [*COLUMNS]
        asked = asked or [*usual] or DEFAULT.split(",")
    elif by == PARAMS:
        offered = [*params.NAMES]
    else:
        more = {OP: group.HOST, **dict.fromkeys(group.BY_STEPS, group.PER_STEP)}.get(by, {})
        memory = group.MEMORY if by in group.MEMORY_KEYS else ()
        offered = [*by.split(","), *group.MEASURES, *more, *memory]
    if unknown := [name for name in asked if name not in offered]:
        headers = {column.header: column.name for column in COLUMNS.values()}
        hint = suggestion(unknown[0], offered)
        if not hint and unknown[0] in headers:  # `Sil(ns)`, `Direction`
            hint = f"; did you mean {headers[unknown[0]]!r}?"
        raise click.BadParameter(
            f"no column {unknown[0]!r}{hint or ';'} columns are {', '.join(offered)}",
            param_hint="'-c'",
        )
    return tuple(asked)


_USUAL_IN_JSON = "idx,dir,op,layer,line,kernel,sil,tc,flops,bytes,tflops,gbs,eff,bound,why"


def columns_for_json(names: str | None) -> tuple[str, ...]:
    """Parse the names of `-c`, with `idx` first and `why` last."""
    return tuple(dict.fromkeys(("idx", *columns(names or _USUAL_IN_JSON), "why")))


_AGAINST_PEAKS = frozenset({"bound", "eff", "peak"})


def doubts(source: Table, shown: Sequence[Column]) -> tuple[str, ...]:
    """Return the caveats of the peaks that the shown columns rest on."""
    against = _AGAINST_PEAKS & {column.name for column in shown}
    return source.doubts if against else source.contradictions


@dataclass(frozen=True, slots=True)
class Query:
    """Which rows and columns, in which order."""

    names: tuple[str, ...]
    """Names of the columns; () for all usual ones of groups."""
    by: str | None = None
    """The columns to group rows by, joined by commas; the others are then measures."""
    sort: str | None = None
    top: int | None = None
    where: tuple[Condition, ...] = ()
    """Conditions that rows must meet, all of them."""

    @property
    def columns(self) -> tuple[Column, ...]:
        """The columns to show of each row."""
        return tuple(COLUMNS[name] for name in self.names) if self.by is None else ()

    @property
    def conditions_on_numbers(self) -> tuple[Condition, ...]:
        """The conditions on numbers that continue across captures: known once all are read.

        Groups have none: the rows to group are chosen in each capture by itself.
        """
        return tuple(one for one in self.where if one.name in _RENUMBERED and self.by is None)

    @property
    def named(self) -> frozenset[str]:
        """The columns requested by name, to show or to sort by."""
        return frozenset((*self.names, (self.sort or "").rstrip("-")))

    @property
    def of_steps(self) -> bool:
        """Whether a step or its phase is requested."""
        tested = (condition.name for condition in self.where)
        return bool({"step", "phase"} & {*self.named, *(self.by or "").split(","), *tested})

    @property
    def of_host(self) -> bool:
        """Whether the host's time in ops is requested, which only captures record."""
        return self.by == OP and bool(self.named & {*group.HOST})

    @property
    def names_memory(self) -> bool:
        """Whether a column of memory is requested by name."""
        return self.by in group.MEMORY_KEYS and bool(self.named & {*group.MEMORY})

    @property
    def of_memory(self) -> bool:
        """Whether memory is shown where it was recorded: only if all rows are."""
        return self.names_memory or (
            self.by in group.MEMORY_KEYS and not self.names and not self.where
        )


def check_conditions(asked: Query) -> None:
    """Raise click.UsageError if rows are chosen for columns that are known of all rows only."""
    if asked.of_host and asked.where:
        raise click.UsageError(
            "--where chooses kernels, and the host's time in ops is of all calls"
        )
    if asked.names_memory and asked.where:
        raise click.UsageError("--where chooses kernels, and memory is of all that was recorded")


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """The answer of one capture, or of several."""

    data: pa.Table
    """Rows with the requested columns and the one to sort by; or groups."""
    coverage: Coverage
    counts: Counts
    """Counts over all rows, shown or not."""
    warnings: tuple[str, ...]
    matched: int
    """Rows that fulfil the conditions, or groups of them."""
    host: pa.Table | None = None
    """The host's time in each op, if requested; see `host_ops`."""


def summarise_rows(source: Source, asked: Query) -> Answer:
    """Answer for one capture; with its host side if the host's time is requested."""
    table = source.table
    if asked.of_steps:
        from pyprof.analysis.summary.phases import with_steps  # noqa: PLC0415 - seldom asked for

        table = with_steps(source)
    warnings = (*table.source.warnings, *doubts(table, asked.columns))
    chosen = where.rows(
        table, [one for one in asked.where if one not in asked.conditions_on_numbers]
    )
    host = None
    if asked.by is None:
        values = {column.name: column.values(table) for column in asked.columns}
        if asked.sort and (name := asked.sort.rstrip("-")) in COLUMNS and name not in values:
            values[name] = COLUMNS[name].values(table)
        if asked.conditions_on_numbers:  # they are applied later, and change what is covered
            values |= {name: COLUMNS[name].values(table) for name in _RENUMBERED}
            values[_NS] = pa.array(table.duration_ns)
            values[_KERNEL] = pa.array(is_kernel(table.records))
            values[_WHY] = table.costs.why_unknown.to_arrow(pa.string())
        data = pa.table(values)
        data = data if chosen is None else data.filter(pa.array(chosen))
        matched = data.num_rows
        data = _keep_first(data, asked)
    else:
        if asked.by == PARAMS:
            data = params.grouped(table, chosen)
        else:
            data = group.group(table, asked.by, chosen)
        if asked.of_host:
            from pyprof.analysis.summary import host_ops  # noqa: PLC0415 - as above

            host = host_ops.host_ops(source)
            if host is None:
                unknown = f"what the host spent in ops is unknown: {host_ops.WHY_UNKNOWN}"
                warnings = (*warnings, unknown)
        matched = _group_count(data, host)
    return Answer(
        data=data,
        coverage=cost_coverage(table, chosen),
        counts=counts(table),
        warnings=warnings,
        matched=matched,
        host=host,
    )


OP = "op"
PARAMS = "params"
"""The value of `by` that groups rows by op, direction and shape."""


def merge_answers(a: Answer, b: Answer, asked: Query) -> Answer:
    """Merge two answers; the numbers of rows and op calls continue in the second."""
    host = known_in_both(a.host, b.host)
    if asked.by is not None:
        merge = params.merge_groups if asked.by == PARAMS else group.merge_groups
        data = merge(a.data, b.data)
        matched = _group_count(data, host)
    else:
        data = _keep_first(pa.concat_tables([a.data, a.counts.before(b.data)]), asked)
        matched = a.matched + b.matched
    return Answer(
        data=data,
        coverage=merge_sums(a.coverage, b.coverage),
        counts=merge_sums(a.counts, b.counts),
        warnings=merge_unique(a.warnings, b.warnings),
        matched=matched,
        host=host,
    )


def _group_count(groups: pa.Table, host: pa.Table | None) -> int:
    """Count groups, those of ops that launched nothing included."""
    if host is None:
        return int(groups.num_rows)
    return len({*groups.column("key").to_pylist(), *host.column("op").to_pylist()})


_RENUMBERED = ("idx", "opid")
_NS, _WHY, _KERNEL = "time of rows", "reason of rows", "kernels"


def apply_global_conditions(answer: Answer, asked: Query) -> Answer:
    """Apply the conditions on numbers that continue, when all captures have been read."""
    if not asked.conditions_on_numbers:
        return answer
    data = answer.data.combine_chunks()
    holds = [
        one.holds(data.column(one.name).combine_chunks()) for one in asked.conditions_on_numbers
    ]
    data = data.filter(pa.array(np.logical_and.reduce(holds)))
    ns, why, kernels = (one_chunk(data.column(name)) for name in (_NS, _WHY, _KERNEL))
    known = sum_coverage(
        ns.to_numpy(),
        encode(why),
        kernels.to_numpy(zero_copy_only=False),
        answer.coverage.processor,
    )
    first = _keep_first(data, replace(asked, where=()))
    return replace(answer, data=first, coverage=known, matched=data.num_rows)


def _keep_first(data: pa.Table, asked: Query) -> pa.Table:
    """Keep the rows that can be among those shown, in their order."""
    if asked.conditions_on_numbers:
        return data
    if asked.sort is None:
        return data.slice(0, asked.top)
    order = _order(asked.sort, [*COLUMNS], data)
    return data.take(pa.array(order[: asked.top]))


def shown(
    answer: Answer, asked: Query, device: DeviceMemory | None = None
) -> tuple[Sequence[Column], Iterator[pa.Table]]:
    """Return the columns to show and their values, batch by batch.

    `device` is the one whose memory is shown, where memory was recorded.
    """
    if asked.by is None:
        return asked.columns, _batches(answer.data.select([c.name for c in asked.columns]))
    host = None
    if asked.of_host:
        from pyprof.analysis.summary.host_ops import NOTHING, by_op  # noqa: PLC0415 - as above

        host = by_op(NOTHING if answer.host is None else answer.host)
    columns, data = (
        params.measured(answer.data)
        if asked.by == PARAMS
        else group.measured(answer.data, asked.by, host, asked.named)
    )
    if asked.names_memory or (asked.of_memory and device is not None):
        columns, data = with_memory(columns, data, asked.by, device)
    if asked.sort is not None:
        names = [column.name for column in columns]
        data = data.take(pa.array(_order(asked.sort, names, data)))
    if asked.names:
        by_name = {column.name: column for column in columns}
        columns, data = [by_name[name] for name in asked.names], data.select([*asked.names])
    return columns, _batches(data.slice(0, asked.top))


def _order(sort: str, names: Sequence[str], data: pa.Table) -> np.ndarray:
    name, descending = sort.rstrip("-"), not sort.endswith("-")
    if name not in names:
        hint = suggestion(name, names) or ";"
        raise click.BadParameter(
            f"cannot sort by {name!r}{hint} columns are {', '.join(names)}", param_hint="'--sort'"
        )
    keys = data.column(name)
    order = "descending" if descending else "ascending"
    index = pc.sort_indices(pa.table({"key": keys, "row": np.arange(data.num_rows)}),
                            sort_keys=[("key", order), ("row", "ascending")])  # fmt: skip
    order_of_rows: np.ndarray = index.to_numpy()
    return order_of_rows


def _batches(data: pa.Table) -> Iterator[pa.Table]:
    for start in range(0, data.num_rows, _BATCH_ROWS):
        yield data.slice(start, _BATCH_ROWS)


def prof_answer(given: Answer, asked: Query, device: DeviceMemory | None = None) -> Prof:
    """Make the answer for JSON; its rows are converted while they are written."""
    shown_columns, tables = shown(given, asked, device)
    return Prof(
        known_cost=known_cost(given.coverage),
        where=" and ".join(map(str, asked.where)) or None,
        by=asked.by,
        row_count=given.counts.rows,
        rows_left_out=given.matched - min(given.matched, asked.top or given.matched),
        columns=tuple(
            ColumnMeaning(json_columns.key(column), column.name, column.unit, column.help)
            for column in shown_columns
        ),
        rows=Rows(json_columns.converted(shown_columns, tables)),
    )


def require_coverage(coverage: Coverage, percent: float | None) -> None:
    """Raise PyprofError if less of the time has a known cost than is required."""
    if percent is not None and coverage.percent < percent:
        raise PyprofError(
            f"cost known for only {coverage.percent:.1f} % of {coverage.processor} time,"
            f" less than {percent:g} %; the unknown ops are listed above"
        )
