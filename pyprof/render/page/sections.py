"""Cards, tables and texts of the report's page; a cell knows the number that it sorts by."""

from __future__ import annotations

import re
from dataclasses import KW_ONLY, dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

from pyprof.analysis.summary.op_totals import totals
from pyprof.answers.gains import gain_of
from pyprof.answers.parts import UnknownCost
from pyprof.answers.remedies import explained
from pyprof.inputs.user_source import read
from pyprof.prof.processor import CPU, word
from pyprof.records.records import distinct
from pyprof.render.idle_causes import MEANINGS
from pyprof.render.text.formatting import DASH, count, duration, part_name, percent, short_line
from pyprof.render.text.formatting import number as spelt
from pyprof.render.text.known_cost_text import without_copies
from pyprof.render.text.summary_text import USUAL_METHODS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import pyarrow as pa

    from pyprof.analysis.time.timeline import DeviceTime
    from pyprof.answers.lines_answer import Lines, LineTime
    from pyprof.answers.parts import KnownCost
    from pyprof.answers.summary_answer import DeviceUse, OpTime, PeakUse, Summary
    from pyprof.inputs.user_source import Sources
    from pyprof.prof.table import Table
    from pyprof.render.page.cross_filter import FilterData


@dataclass(frozen=True, slots=True)
class Cell:
    """One cell. A text has neither number nor part."""

    text: str
    number: float | None = None
    """What it sorts by; None for a text, and for a number that is not known."""
    part: str | None = None
    """Length of a bar behind it, in %."""
    _: KW_ONLY
    note: str = ""
    """Shown while the pointer rests on it."""
    sort: str = ""
    """Class of a text, for its colour or where it is cut."""
    value: str = ""
    """The value that filters and CSV use, if it is not the text."""


class Heading(NamedTuple):
    """The heading of a column."""

    title: str
    is_text: bool
    name: str = ""
    """Name in filters (`tc=0`) and CSV; "" if it is the title."""
    unit: str = ""
    """Unit of the numbers: `ns`, `%`."""

    @property
    def csv(self) -> str:
        """Name the column, with its unit, as CSV has it."""
        name = self.name or self.title
        return f"{name}_{self.unit}" if self.unit.isalpha() else name


def _texts(title: str, name: str = "") -> Heading:
    return Heading(title, is_text=True, name=name)


def _numbers(title: str, name: str = "", unit: str = "") -> Heading:
    return Heading(title, is_text=False, name=name, unit=unit)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sortable:
    """A table that the page can sort and filter."""

    columns: Sequence[Heading]
    rows: Sequence[Sequence[Cell]]
    left_out: int = 0
    """Rows that the page leaves out to stay small."""
    left_out_ns: int = 0
    """Summed time of these rows."""
    keys: Sequence[str | None] = ()
    """The selection of each row; () if rows cannot be selected."""
    less: str = "shorter"
    """How the rows that are left out compare to those shown: `shorter` or `smaller`."""

    @property
    def keyed(self) -> Iterator[tuple[Sequence[Cell], str | None]]:
        """Yield each row with its key."""
        return zip(self.rows, self.keys or [None] * len(self.rows), strict=True)

    @property
    def left_out_time(self) -> str:
        """Format the time of the rows that are left out."""
        return duration(self.left_out_ns)


_CUT = 300
PATH = "path"
"""Class of texts that are cut at their beginning, since their end matters more."""
_WORD = "word"
"""Class of texts that are never cut nor broken: each is one of a few words."""


def text(value: str | None, note: str = "", sort: str = "") -> Cell:
    """Make a cell of text; very long ones are cut, and end with `...`."""
    shown = DASH if value is None else value
    return Cell(shown if len(shown) <= _CUT else f"{shown[:_CUT]}...", note=note[:_CUT], sort=sort)


def number(value: float | None, spelt: str) -> Cell:
    """Make a cell of a number, shown as `spelt`."""
    return Cell(spelt, value)


def share(fraction: float | None) -> Cell:
    """Make a cell of a share with a bar behind it."""
    if fraction is None:
        return Cell(DASH)
    percent = 100 * fraction
    return Cell(f"{percent:.1f} %", percent, f"{min(percent, 100):.1f}")


_MAX_ROWS = 500
_FOLDERS = re.compile(r"(?<![^\\/\s'\"(])[^\\/\s'\"(]*(?:[\\/][^\\/\s'\"]+)+[\\/]")


def without_folders(sentence: str) -> str:
    """Leave folders out of the paths in a sentence: they may show who captured it, and where."""
    return _FOLDERS.sub("", sentence)


def cards(answer: Summary) -> Iterator[tuple[str, str, str]]:
    """Title, value and note of each headline number."""
    on, known, devices = answer.processor, answer.known_cost, answer.devices
    rows = f"{answer.layers[0].rows:,} {'ops' if on == CPU else 'kernels and copies'}"
    yield f"{on} time", duration(known.total_ns), rows
    if devices is not None:
        span = sum(device.span_ns for device in devices)
        busy = sum(device.busy_ns for device in devices)
        exposed = sum(device.exposed_communication_ns for device in devices)
        yield (
            f"{on} busy",
            f"{percent(busy / span if span else None)} %",
            f"{duration(busy)} of {duration(span)}",
        )
        yield f"{on} idle", duration(span - busy), "no stream had work"
        if any(device.communication_ns for device in devices):
            yield "communication exposed", duration(exposed), "while nothing was computed"
    steps = answer.steps
    if steps.averaged_count is not None:
        warm = steps.warm_up_count
        several = f"mean of {steps.averaged_count:,} of {steps.count:,} steps"
        note = several if steps.count > 1 else "the only one"
        note += f", {warm} are warm-up" if warm and not steps.are_chosen else ""
        yield "a step", duration(steps.mean_ns), f"{note}; from {steps.described_origin}"
    yield from _utilization(answer.utilization)
    note = f"of {on} time has a FLOP and byte count{without_copies(known)}"
    yield "cost known", f"{100 * known.known_share:.1f} %", note


def _utilization(use: PeakUse) -> Iterator[tuple[str, str, str]]:
    if use.why:
        yield "MFU", "unknown", use.why
    else:
        yield "MFU", f"{percent(use.mfu)} %", f"of {use.peak_flops_label}"
        yield "HFU", f"{percent(use.hfu)} %", "also counts recomputed work"
    if use.mbu is not None:
        yield "MBU", f"{percent(use.mbu)} %", "of memory bandwidth, in decode steps"


def shares(time_ns: Mapping[str, int]) -> list[tuple[str, str, float]]:
    """Name, time and share of each entry."""
    total_ns = max(sum(time_ns.values()), 1)
    return [(name, duration(ns), ns / total_ns) for name, ns in time_ns.items()]


def link_methods(answer: Summary) -> list[tuple[str, str, float]]:
    """How ops were found, with time and share; [] if all by a launch or the forward op."""
    if not set(answer.found_by_ns) - {*USUAL_METHODS, ""}:
        return []
    return [(name or "not found", time, part) for name, time, part in shares(answer.found_by_ns)]


def causes(answer: Summary) -> list[tuple[str, str, str, float]]:
    """Name, meaning, time and share of each cause of idle time, the longest first."""
    total: dict[str, int] = {}
    for device in answer.devices or ():
        for cause, ns in device.idle_by_cause_ns.items():
            total[cause] = total.get(cause, 0) + ns
    ordered = dict(sorted(total.items(), key=lambda entry: -entry[1]))
    return [
        (cause, MEANINGS.get(cause, cause), time, part)
        for cause, time, part in shares(ordered)
        if ordered[cause]
    ]


def phases(answer: Summary) -> list[tuple[str, str, float, str | None]]:
    """Name, time and share of each part of a step, and its MFU if that is known."""
    total_ns = max(sum(part.time_ns for part in answer.parts), 1)
    return [
        (part_name(part.part), duration(part.time_ns), part.time_ns / total_ns,
         percent(part.mfu) if part.mfu is not None else None)
        for part in answer.parts
    ]  # fmt: skip


def advice(answer: Summary) -> list[dict[str, Any]]:
    """The advice with its evidence, in its order."""
    return [
        {
            "title": without_folders(entry.title),
            "action": without_folders(entry.action),
            "detailed": any(finding.detail for finding in entry.evidence),
            "gain": f"gain {gain_of(entry).words}",
            "predicted": entry.predicted,
            "evidence": [
                (finding.what, short_line(finding.line), count(finding.count),
                 duration(finding.time_ns), without_folders(finding.detail))
                for finding in entry.evidence
            ],
        }
        for entry in answer.advice
    ]  # fmt: skip


_TIME = (_numbers("time", "time", "ns"), _numbers("share", "share", "%"))
_RATES = (_numbers("TFLOP/s", "tflops"), _numbers("GB/s", "gbs"))
_TENSOR_CORES = _texts("Tensor Cores", "tc")


def ops(answer: Summary, selectable: FilterData) -> Sortable:
    """Tabulate the ops that take most time."""
    # a phone shows the first three
    columns = [_texts("op"), *_TIME, _texts("direction", "dir"), _texts("line"),
               _numbers("calls"), _numbers("kernels"), *_RATES,
               _numbers("efficiency", "eff", "%"), _texts("bound"),
               _TENSOR_CORES]  # fmt: skip
    shown, rest = answer.ops[:_MAX_ROWS], answer.ops[_MAX_ROWS:]
    rows = [
        [
            text(op.op or op.kernel),
            number(op.time_ns, duration(op.time_ns)),
            share(op.share),
            text(part_name(op.dir), sort=_WORD),
            text(short_line(op.line) if op.line or not op.range else f"in {op.range}", sort=PATH),
            number(op.calls, count(op.calls)),
            number(op.kernels, count(op.kernels)),
            _rate(op.flops_per_s, 1e12),
            _rate(op.bytes_per_s, 1e9),
            share(op.efficiency),
            text(op.bound, sort=_WORD),
            _tensor_cores(op.tc),
        ]
        for op in shown
    ]
    keys = [selectable.key(**_op_key(op)) for op in shown]
    return Sortable(
        columns=columns,
        rows=rows,
        left_out=len(rest),
        left_out_ns=sum(op.time_ns for op in rest),
        keys=keys,
    )


def _op_key(op: OpTime) -> dict[str, str | None]:
    unnamed = {"kernel": op.kernel or None} if op.op is None else {}
    return {"op": op.op, "dir": op.dir, "line": op.line, **unnamed}


def _tensor_cores(used: str | None) -> Cell:
    spelt = {"1": "used", "0": "not used", "?": "unknown"}.get(used or "")
    return replace(text(spelt, sort=_WORD), value=used or DASH)


KERNELS = ("kernel", "op", "tc")
"""The keys of the sums that `kernels` takes."""


def kernels(sums: pa.Table, full: Mapping[str, str], selectable: FilterData) -> Sortable:
    """Tabulate the kernels that take most time; the full name shows under the pointer."""
    columns = [_texts("kernel"), *_TIME, _texts("op"), _numbers("calls"),
               _numbers("mean", "mean", "ns"), *_RATES, _TENSOR_CORES]  # fmt: skip
    groups = totals(sums)
    shown, rest = groups[:_MAX_ROWS], groups[_MAX_ROWS:]
    rows = [
        [
            text(group.key[0], note=full.get(group.key[0] or "", "")),
            number(group.time_ns, duration(group.time_ns)),
            share(group.share),
            text(group.key[1]),
            number(group.calls, count(group.calls)),
            number(group.time_ns / group.calls, duration(group.time_ns / group.calls)),
            _rate(group.flops_per_s, 1e12),
            _rate(group.bytes_per_s, 1e9),
            _tensor_cores(group.key[2]),
        ]
        for group in shown
    ]
    keys = [selectable.key(**dict(zip(KERNELS, group.key, strict=True))) for group in shown]
    return Sortable(
        columns=columns,
        rows=rows,
        left_out=len(rest),
        left_out_ns=sum(group.time_ns for group in rest),
        keys=keys,
    )


def full_names(table: Table) -> dict[str, str]:
    """Return the full name of each short one."""
    full, short = (table.records.dictionary(name) for name in ("kLongName", "kShortName"))
    rows, _ = distinct(short.index)
    pairs = zip(short.index[rows].tolist(), full.index[rows].tolist(), strict=True)
    return {
        short.values[index].replace(" ", "_"): full.values[name]
        for index, name in sorted(pairs)
        if index >= 0 and name >= 0
    }


def line_table(answer: Lines, selectable: FilterData, code: Code | None = None) -> Sortable:
    """The source lines that launched work themselves, the slowest first."""
    return _line_table(answer, _slowest(answer), selectable, code)


def caller_table(answer: Lines, selectable: FilterData, code: Code | None = None) -> Sortable:
    """The lines that only call others, by the time of their callees."""
    lines = [line for file in answer.files for line in file.lines if not line.own_ns]
    lines.sort(key=lambda line: -line.time_ns)
    return _line_table(answer, lines, selectable, code)


def _slowest(answer: Lines) -> list[LineTime]:
    lines = [line for file in answer.files for line in file.lines if line.own_ns]
    return sorted(lines, key=lambda line: -line.own_ns)


def _line_table(
    answer: Lines, lines: Sequence[LineTime], selectable: FilterData, code: Code | None
) -> Sortable:
    columns = [_texts("line"), *([_texts("source")] if code else []),
               _numbers("own time", "time", "ns"), _numbers("share", "share", "%"),
               _numbers("with callees", "total", "ns"),
               _numbers("op calls", "calls")]  # fmt: skip
    total_ns = max(answer.total_ns, 1)
    shown, rest = lines[:_MAX_ROWS], lines[_MAX_ROWS:]
    rows: list[list[Cell]] = [
        [
            text(f"{short_line(line.file)}:{line.number}", sort=PATH),
            *([text(code.line(line.file, line.number))] if code else []),
            number(line.own_ns, duration(line.own_ns)),
            share(line.own_ns / total_ns),
            number(line.time_ns, duration(line.time_ns)),
            number(line.calls, count(line.calls)),
        ]
        for line in shown
    ]
    keys = [selectable.key(stack=line.line) for line in shown]
    return Sortable(
        columns=columns,
        rows=rows,
        left_out=len(rest),
        left_out_ns=sum(line.own_ns for line in rest),
        keys=keys,
    )


class Code:
    """The text of source lines, each file read once."""

    def __init__(self, sources: Sources) -> None:
        self._sources = sources
        self._file = cache(self._read)

    def line(self, path: str, number: int) -> str:
        """Return a line without its indent; "" if it is not found."""
        return "".join(code for _, code in self.around(path, number, 0)).strip()

    def around(self, path: str, number: int, lines: int) -> list[tuple[int, str]]:
        """Return a line with as many before and after it, numbered; none if it is not found."""
        source = self._file(path)
        if not 0 < number <= len(source):
            return []
        first = max(number - lines, 1)
        return [*enumerate(source[first - 1 : number + lines], first)]

    def _read(self, path: str) -> list[str]:
        file = self._sources.find(path)
        return (read(file) if file is not None else None) or []


_EXCERPTS, _CONTEXT_LINES = 5, 3


class Excerpt(NamedTuple):
    """Some lines of a file."""

    file: str
    lines: list[tuple[int, str, str]]
    """Number, own time ("" of a line that is not among the slowest) and text."""


def excerpts(answer: Lines, code: Code) -> list[Excerpt]:
    """The surroundings of the slowest lines whose source is found; adjacent ones are joined."""
    slowest = _slowest(answer)[:_EXCERPTS]
    times = {(line.file, line.number): duration(line.own_ns) for line in slowest}
    shown: list[Excerpt] = []
    for path in dict.fromkeys(line.file for line in slowest):
        around = {
            number: text
            for line in slowest
            if line.file == path
            for number, text in code.around(path, line.number, _CONTEXT_LINES)
        }
        shown += [
            Excerpt(short_line(path), [
                (number, times.get((path, number), ""), around[number][:_CUT]) for number in run
            ])
            for run in _runs(sorted(around))
        ]  # fmt: skip
    return shown


def _runs(numbers: Sequence[int]) -> list[list[int]]:
    """Split ascending numbers into runs without gaps."""
    runs: list[list[int]] = []
    for number in numbers:
        if not runs or number != runs[-1][-1] + 1:
            runs.append([])
        runs[-1].append(number)
    return runs


def unknown(known: KnownCost) -> list[tuple[str, str, str, str, str]]:
    """Reason, time, share, rows and remedy of each unknown, those of most time first."""
    shown, rest = [*known.unknown[:_MAX_REASONS]], known.unknown[_MAX_REASONS:]
    if rest:
        time_ns, rows = sum(each.time_ns for each in rest), sum(each.rows for each in rest)
        shown.append(UnknownCost(f"{len(rest)} other reasons", time_ns, rows))
    return [
        (without_folders(why), duration(each.time_ns),
         percent(each.time_ns / max(known.total_ns, 1)), count(each.rows), remedy)
        for each in shown
        for why, remedy in (explained(each.reason),)
    ]  # fmt: skip


_MAX_REASONS = 12


def devices(answer: Summary) -> list[tuple[str, list[str]]]:
    """For each GPU its name, and the values under the headings of the template."""
    return [
        (use_name(device), [
            duration(device.span_ns),
            f"{percent(device.busy_ns / device.span_ns if device.span_ns else None)} %",
            *(duration(ns) for ns in (device.busy_ns, device.idle_ns, device.compute_ns,
              device.communication_ns, device.exposed_communication_ns, device.copy_ns)),
            cause_of(device.idle_by_cause_ns),
        ])
        for device in (answer.devices or ())[:_MAX_DEVICES]
    ]  # fmt: skip


_MAX_DEVICES = 64


def use_name(device: DeviceUse) -> str:
    """Name a GPU of the answer, and the rank, or process, that used it."""
    owner = f"process {device.pid}" if device.rank is None else f"rank {device.rank}"
    return f"{'CPU' if device.on_cpu else f'{device.processor} {_number(device)}'}, {owner}"


def _number(device: DeviceUse) -> int:
    return -1 if device.device is None else device.device


def device_name(device: DeviceTime) -> str:
    """Name a GPU, and the rank, or process, that used it."""
    owner = f"process {device.pid}" if device.rank is None else f"rank {device.rank}"
    return f"{'CPU' if device.on_cpu else f'{word(device.gpu)} {device.device}'}, {owner}"


def cause_of(idle: Mapping[str, int]) -> str:
    """Name the cause of most idle time."""
    cause = max(idle, key=lambda name: idle[name], default=None)
    return f"{cause} {duration(idle[cause])}" if cause is not None and idle[cause] else DASH


def _rate(value: float | None, unit: float) -> Cell:
    scaled = None if value is None else value / unit
    return number(scaled, spelt(scaled))
