"""`pyprof prof --explain ROW`: what each stage of costing saw of a row, and what it decided.

The sections are the stages of `pyprof.prof.costs.share_costs`, and the roofline behind them.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from pyprof.answers.prof_answer import Explanation, Section
from pyprof.arrays import MISSING
from pyprof.errors import PyprofError
from pyprof.gpu.peaks import GIGA, TERA
from pyprof.marker import UNTYPED, Opaque, Tensor
from pyprof.prof import costs
from pyprof.prof.calls.op_choice import candidates
from pyprof.prof.columns.standard import COLUMNS
from pyprof.quantities import DASH, counted, duration, number

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from pyprof.gpu.peaks import Rate
    from pyprof.marker import Value
    from pyprof.prof.calls.attributed_call import AttributedCall
    from pyprof.prof.table import KernelClass, Table

_MAX_KERNELS = 20
"""Maximum number of kernels of one op call that are listed."""


@dataclass
class _Row:
    """A row and the stages of costing, each computed once."""

    table: Table
    index: int
    """Index of the row, from 0."""

    @cached_property
    def choice(self) -> costs.Rows:
        return costs.choose_op_calls(self.table.records, self.table.override.model)

    @cached_property
    def grouping(self) -> costs.Grouping:
        return costs.group_kernels(self.choice)

    @cached_property
    def call_costs(self) -> costs.CallCosts:
        return costs.cost_op_calls(self.choice, self.grouping)

    def value(self, name: str) -> Any:  # noqa: ANN401 - of any type
        """Return the row's value of a column of `pyprof prof`."""
        return COLUMNS[name].values(self.table)[self.index].as_py()

    def record(self, name: str) -> Any:  # noqa: ANN401 - of any type
        """Return the row's value of a column of the record."""
        return self.table.records.arrow(name)[self.index].as_py()


def explanation(table: Table, row: int) -> Explanation:
    """Explain a row, as `idx` numbers them from 1. Raises PyprofError if there is no such row."""
    rows = table.records.rows
    if not 1 <= row <= rows:
        raise PyprofError(f"no row {row}: rows are numbered from 1 to {rows}")
    explained = _Row(table, row - 1)
    stages = SECTIONS | {MEASURED: _measured} if table.measured.any else SECTIONS
    return Explanation(
        row, tuple(Section(title, tuple(stage(explained))) for title, stage in stages.items())
    )


MEASURED = "6. Compare with counters"
"""Title of the section that exists only if something was measured."""


def _describe_record(row: _Row) -> Iterator[str]:
    yield f"{row.value('kind') or 'kernel'} {row.record('kLongName') or DASH}"
    where = f"device {_or_dash(row.value('device'))}, stream {_or_dash(row.value('stream'))}"
    yield f"time: {duration(row.value('sil'))} on {where}"
    context = row.choice.context.at(row.index)
    texts = [*(row.record("marker") or ()), *(row.record("seqMarker") or ())]
    around = [texts[index] for index in context.order or range(len(texts))]
    yield from _texts("ranges around it, outermost first", around)
    forward = [*(row.record("fwdSeqMarker") or ()), *(row.record("fwdMarker") or ())]
    yield from _texts("ranges around its forward op", forward)


def _choice(row: _Row) -> Iterator[str]:
    if via := row.record("via"):
        yield f"ranges found by: {via}"
    for each in candidates(row.choice.context.at(row.index)):
        call, named = each.work.call, "a range"
        if call is not None:
            arguments = ", ".join(map(_argument, call.args))
            named = f"{call.mod}.{call.op}({arguments})".removeprefix(".")
        verdict = "usable" if each.usable else each.reason or costs.UNEXPLAINED
        yield f"{_direction(each.work)}{named}: {verdict}"
    work: AttributedCall = row.choice.work.at(row.index)
    if work.call is None:
        yield f"chosen: none ({work.reason})"
        return
    of_type = f", with elements of type {work.dtype}, from the ranges around it"
    yield f"chosen: {_direction(work)}{work.call.op}{of_type if work.dtype else ''}"


def _grouping(row: _Row) -> Iterator[str]:
    grouping = row.grouping
    same = np.flatnonzero(grouping.call == grouping.call[row.index])
    yield f"op call {grouping.call[row.index]} has {counted(len(same), 'row')}:"
    for index in same[:_MAX_KERNELS].tolist():
        name = row.table.records.arrow("kShortName")[index].as_py() or DASH
        time = duration(int(row.table.duration_ns[index]) if row.table.timed[index] else None)
        does = "does the arithmetic" if grouping.arithmetic[index] else "a helper kernel"
        does = "an autotuning trial" if grouping.autotuning[index] else does
        mark = "->" if index == row.index else "  "
        yield f"{mark} row {index + 1}: {name}, {time}, {does}"
    if len(same) > _MAX_KERNELS:
        yield f"   and {len(same) - _MAX_KERNELS} more"


def _prices(row: _Row) -> Iterator[str]:
    cost = row.call_costs.cost.at(row.index)
    yield f"the whole op call: {_figure(cost.flops)} FLOPs, {_figure(cost.bytes)} bytes"
    if cost.via:
        yield f"with help of {cost.via}"
    if cost.params:
        yield "from " + ", ".join(f"{name}={value}" for name, value in cost.params.items())
    source = "by the ops inside it" if row.choice.on_cpu[row.index] else "from the kernels' names"
    for name, hint in row.call_costs.hint.at(row.index)._asdict().items():
        if hint is not None:
            yield f"{source}: {name} {hint}"
    if cost.reason:
        yield f"unknown: {cost.reason}"


def _shares(row: _Row) -> Iterator[str]:
    shared = row.table.costs
    flops, moved = (int(column[row.index]) for column in (shared.flops, shared.bytes))
    yield f"this row: {_figure(flops)} FLOPs, {_figure(moved)} bytes"
    call_cost = row.call_costs.cost.at(row.index)
    for name, share, total in (
        ("FLOPs", flops, call_cost.flops),
        ("bytes", moved, call_cost.bytes),
    ):
        if total and share != MISSING:
            yield f"{100 * share / total:.1f} % of the call's {name}"
    if reason := shared.reason.at(row.index):
        yield f"because: {reason}"


def _roofline(row: _Row) -> Iterator[str]:
    rates, index = row.table.rates, row.index
    judgement: KernelClass = row.table.classified.at(index)
    yield f"Tensor Cores: {judgement.tc.value} ({judgement.tc.rule or 'no rule for its name'})"
    yield f"computes in {judgement.dtype or 'an unknown type'}"
    yield f"peak of arithmetic: {_peak(judgement.certain_peak, TERA, 'TFLOP/s')}"
    yield f"peak of memory: {_peak(judgement.bandwidth_peak, GIGA, 'GB/s')}"
    yield f"arithmetic intensity: {_rate(rates.intensity[index], 1, 'FLOP/byte')}"
    yield f"achieved arithmetic: {_rate(rates.flops_per_s[index], TERA, 'TFLOP/s')}"
    yield f"achieved bandwidth: {_rate(rates.bytes_per_s[index], GIGA, 'GB/s')}"
    share = _rate(row.table.roofline.share[index], 0.01, "%")
    yield f"efficiency: {share}, bound: {_or_dash(row.value('bound'))}"
    if why := row.value("why"):
        yield f"why: {why}"


def _measured(row: _Row) -> Iterator[str]:
    if (source := row.value("counter")) is None:
        yield "nothing was measured of this row"
        return
    yield f"measured by: {source}"
    for name, label in _MEASURED.items():
        if (value := row.value(name)) is not None:
            yield f"{label}: {number(value)} {COLUMNS[name].unit}".rstrip()


_MEASURED = {
    "dram": "DRAM traffic",
    "dramerr": "its standard error",
    "excess": "over the least bytes",
    "tensor": "Tensor Cores active",
    "tensorerr": "its standard error",
    "tcmeas": "Tensor Cores used (1 yes, 0 no)",
    "xflops": "FLOPs outside Tensor Cores",
    "occ": "theoretical occupancy",
    "occmeas": "achieved occupancy",
    "waves": "waves",
    "l1hit": "hits in L1",
    "l2hit": "hits in L2",
    "clock": "SM clock",
    "effclk": "efficiency at this clock",
    "power": "power",
    "energy": "energy",
}
"""Columns, with labels for their values."""

SECTIONS: dict[str, Callable[[_Row], Iterator[str]]] = {
    "What is recorded": _describe_record,
    "1. Choose the op call": _choice,
    "2. Find the kernels of the op call": _grouping,
    "3. Cost the op call": _prices,
    "4. Share the cost among its kernels": _shares,
    "5. Place the kernel on the roofline": _roofline,
}


def _texts(title: str, texts: Sequence[str]) -> Iterator[str]:
    yield f"{title}:{'' if texts else ' none'}"
    yield from (f"  {text}" for text in texts)


def _direction(work: AttributedCall) -> str:
    return "backward of " if work.direction == "bprop" else ""


def _argument(value: Value) -> str:
    if isinstance(value, Tensor):
        return f"{value.dtype or '?'}{list(value.shape)}"
    if isinstance(value, tuple):
        return f"[{', '.join(map(_argument, value))}]"
    if isinstance(value, Opaque):
        return "?" if value.type in {"", UNTYPED} else value.type
    return str(value)


def _figure(value: int | None) -> str:
    return "unknown" if value is None or value == MISSING else f"{value:,}"


def _rate(value: float, size: float, unit: str) -> str:
    return "unknown" if np.isnan(value) else f"{number(value / size)} {unit}"


def _peak(peak: Rate | None, size: float, unit: str) -> str:
    return "unknown" if peak is None else f"{_rate(peak.value, size, unit)} ({peak.label})"


def _or_dash(value: object) -> str:
    return DASH if value is None else str(value)
