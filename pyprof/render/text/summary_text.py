"""The overview as text: what a user reads first."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from pyprof.analysis.summary.host_ops import UNKNOWN as UNKNOWN_HOST
from pyprof.analysis.summary.host_ops import by_op
from pyprof.analysis.summary.layer_tree import named
from pyprof.analysis.summary.phases import by_phase, said
from pyprof.analysis.time.idle import CPU_CAUSES, MEANINGS
from pyprof.render.text import formatting
from pyprof.render.text.formatting import (
    UNKNOWN,
    duration,
    milliseconds,
    number,
    part_name,
    percent,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from pyprof.analysis.advice import Advice, Evidence, Scope
    from pyprof.analysis.filtered import Filtered
    from pyprof.analysis.summary.op_totals import OpTotals
    from pyprof.analysis.summary.overview import Brief, DeviceTotals, Times
    from pyprof.analysis.summary.utilization import Utilization
    from pyprof.marker import ServingStep

_NAME_WIDTH = 40
_LABEL = 10


def head(brief: Brief) -> Iterator[str]:
    """Say what was captured, which peaks are used, and which steps there are."""
    names = [name or "not named by the capture" for name in brief.gpus if name != "cpu"]
    yield from _labelled("GPU", "; ".join(names) or "none: these are ops timed on the CPU")
    unknown = ("unknown: name the device with --gpu",) if names else ()
    for place, peak in enumerate(brief.peaks or unknown):
        yield from _labelled("" if place else "Peaks", peak)
    yield from _labelled("Modelled", brief.coverage.text)
    yield from _vias(brief)
    yield from _labelled("Steps", _steps(brief))
    yield from _trend(brief)
    yield from _recording_windows(brief)
    yield from filtered(brief.kept)
    if brief.kept is None:
        yield from _utilization(brief.utilization)


def filtered(kept: Filtered | None) -> Iterator[str]:
    """Say what `--where` left of the rows, and that the rest is of these alone."""
    if kept is not None:
        share = percent(kept.time_ns / kept.all_ns if kept.all_ns else None)
        size = f"{kept.rows:,} of {kept.all_rows:,} rows, {share} % of {kept.processor} time"
        yield from _labelled("Where", f"{kept.text}: {size}; what follows is of these alone")


def _vias(brief: Brief) -> Iterator[str]:
    """Say how ops were found, where not all by a launch, or from there by the forward op."""
    if set(brief.vias) - {*USUAL_VIAS, ""}:
        total_ns = sum(brief.vias.values()) or 1
        parts = (
            f"{name or 'not found'} {percent(ns / total_ns)} %" for name, ns in brief.vias.items()
        )
        yield from _labelled("Ops by", ", ".join(parts))


USUAL_VIAS = ("launch", "forward op")
"""How ops are found outside of graphs, which needs no word."""


def _labelled(label: str, value: str) -> Iterator[str]:
    first, *rest = formatting.wrapped(value, " " * _LABEL)
    yield f"{formatting.heading(label.ljust(_LABEL - 1))} {first[_LABEL:]}"
    yield from rest


def _steps(brief: Brief) -> str:
    steps = brief.steps
    if not len(steps):
        return "none found; call pyprof.annotate('step') around each to see them"
    parts = [f"{len(steps)} by {steps.described_origin}"]
    if brief.averaged is None:
        return f"{parts[0]}, so times are totals; call pyprof.annotate('step') around each step"
    if brief.chosen is not None:
        parts.append(f"shown: {brief.chosen[0]} to {brief.chosen[1] - 1}")
    elif steps.warm_up:
        parts.append(
            f"the first {steps.warm_up} slower: warm-up, excluded from the mean"
            f" (--steps {steps.warm_up}: excludes them from everything)"
        )
    mean = duration(steps.mean_ns(brief.averaged))
    return f"{'; '.join(parts)}; a step takes {mean}, the mean of {brief.step_count}"


_LEVELS = "▁▂▃▄▅▆▇█"
_TREND = 60
"""Characters for the times of all steps; of more steps each stands for several, the slowest."""
_SLOWEST = 3


def _trend(brief: Brief) -> Iterator[str]:
    """Draw how long each step took, and name the slowest."""
    steps = brief.steps
    low, high = brief.chosen or (0, len(steps))
    took = steps.duration_ns[low:high]
    if len(took) < _SLOWEST or brief.averaged is None:
        return
    parts = np.array_split(took, min(len(took), _TREND))
    most = [int(part.max()) for part in parts]
    top = max(most) or 1
    line = "".join(_LEVELS[round(ns / top * (len(_LEVELS) - 1))] for ns in most)
    yield from _labelled("Trend", f"{line} {duration(int(took.min()))} to {duration(top)}")
    every = said(steps)
    slow = [low + int(place) for place in np.argsort(-took, kind="stable")[:_SLOWEST]]
    named = (f"{place} ({', '.join(_about_step(brief, place, every))})" for place in slow)
    yield from _labelled("Slowest", f"step{'s' * (len(slow) > 1)} {', '.join(named)}")


def _about_step(brief: Brief, place: int, every: Sequence[ServingStep]) -> Iterator[str]:
    yield duration(int(brief.steps.duration_ns[place]))
    if every and every[place].phase:
        tokens = every[place].tokens
        yield every[place].phase + (f" of {tokens:,} tokens" if tokens is not None else "")
    shares = brief.utilization.of_step(place, int(brief.steps.duration_ns[place]))
    for name, share in (("MFU", shares.mfu), ("MBU", shares.mbu)):
        if share is not None:
            yield f"{name} {percent(share)} %"


SERVING_HEADER = ("Phase", "Steps", "ms/step", "Tokens/step", "Tokens/s", "Padding%")


def serving_rows(brief: Brief) -> list[list[str]]:
    """Spell the phases of a serving engine's steps; [] where there are none."""
    return [
        [
            total.phase,
            str(total.steps),
            milliseconds(total.duration_ns / total.steps),
            formatting.count(None if total.tokens is None else total.tokens / total.steps),
            number(total.tokens_per_s),
            percent(total.padding),
        ]
        for total in by_phase(brief.steps, brief.chosen)
    ]


def serving(brief: Brief) -> Iterator[str]:
    """Tabulate these phases."""
    if rows := serving_rows(brief):
        lines = formatting.table(rows, SERVING_HEADER, (0,))
        yield formatting.heading(lines[0])
        yield from lines[1:]
        yield ""


def _utilization(usage: Utilization) -> Iterator[str]:
    """Say how near the model's work came to the peaks, or why that is not known."""
    if usage.why:
        yield from _labelled("MFU", f"unknown: {usage.why}")
    else:
        again = usage.hardware_flops - usage.model_flops
        both = f"{percent(usage.mfu)} %, HFU {percent(usage.hfu)} %"
        hardware = "; HFU also counts recomputed work" if again else ""
        part = (
            "" if usage.known == 1 else f"; FLOPs of {percent(usage.known)} % of compute time known"
        )
        of = f"{number((usage.peak_flops or 0) / 1e12)} TFLOP/s, {usage.peak_flops_label}"
        yield from _labelled("MFU", f"{both} of {of}{hardware}{part}")
    if usage.mbu is not None:
        of = f"{number((usage.peak_bandwidth or 0) / 1e9)} GB/s, {usage.peak_bandwidth_label}"
        yield from _labelled("MBU", f"{percent(usage.mbu)} % of {of}, in decode steps")


def _recording_windows(brief: Brief) -> Iterator[str]:
    """Say that the profiler was paused, and how often and long at most on a GPU."""
    devices = brief.times.devices if brief.times else ()
    windows = max((device.windows for device in devices), default=1)
    if windows > 1:
        paused = duration(max(device.paused_ns for device in devices))
        yield from _labelled("Windows", f"{windows}; {paused} between them left out")


# --- time ---------------------------------------------------------------------------------------

_Row = tuple[str, "Callable[[DeviceTotals], int]"]

_BUSY: tuple[_Row, ...] = (
    ("busy", lambda device: device.busy_ns),
    ("  compute", lambda device: device.compute_ns),
    ("  communication", lambda device: device.communication_ns),
    ("    not overlapped", lambda device: device.exposed_communication_ns),
    ("  copies", lambda device: device.copy_ns),
    ("    not overlapped", lambda device: device.exposed_copy_ns),
    ("  overlap of these", lambda device: device.overlap_ns),
    ("idle", lambda device: device.idle_ns),
)
_INDENTED = "    "


_MOST_ACROSS = 4
"""More GPUs than this have a line each, not a column."""
_MOST_DOWN = 64
"""Of more GPUs than this, as many are listed that are least busy."""


def times(timed: Times) -> Iterator[str]:
    """Tabulate where the time of each GPU went; what is 0 everywhere is left out."""
    across = len(timed.devices) <= _MOST_ACROSS
    if not across or (lines := _gpus_across(timed.devices)) is None:
        lines = _gpus_down(_least_busy(timed.devices))
    yield formatting.heading(lines[0])
    yield from lines[1:]
    if (left_out := len(timed.devices) - _MOST_DOWN) > 0:
        yield f"... and {left_out} busier ones; pyprof ranks lists all"
    for note in timed.notes:
        yield from formatting.wrapped(f"Note: {note}")


def _gpus_across(devices: Sequence[DeviceTotals]) -> list[str] | None:
    """Give the table of few GPUs, with what the causes mean; None where it is too wide."""
    rows = [_time_row("span", devices, lambda device: device.span_ns, "")]
    above = 0
    for name, measure in _BUSY:
        above = above if name.startswith(_INDENTED) else max(map(measure, devices))
        if any(map(measure, devices)) or not name.startswith(" "):
            rows.append(_time_row(name, devices, measure, ""))
    meanings = CPU_CAUSES if all(device.on_cpu for device in devices) else MEANINGS
    rows += [
        _time_row(f"  {cause}", devices, _idle_for(cause), meaning)
        for cause, meaning in meanings.items()
        if any(map(_idle_for(cause), devices))
    ]
    header = ["Time (ms)"]
    for device in devices:
        header += [_device(device), "%"]
    left = (0, 2 * len(devices) + 1)
    lines = formatting.table(rows, [*header, ""], left)
    if max(map(len, lines)) <= formatting.WIDTH:
        return lines
    lines = formatting.table([row[:-1] for row in rows], header, left)
    explained = [f"{row[0].strip()}: {row[-1]}" for row in rows if row[-1]]
    fits = max(map(len, lines)) <= formatting.WIDTH
    return [*lines, *(_of_idle(explained))] if fits else None


def _of_idle(meanings: Sequence[str]) -> Iterator[str]:
    for meaning in meanings:
        yield from formatting.wrapped(meaning, "  ", "    ")


def _least_busy(devices: Sequence[DeviceTotals]) -> Sequence[DeviceTotals]:
    """Choose the GPUs to list, in their order."""
    share = [device.busy_ns / max(device.span_ns, 1) for device in devices]
    least = sorted(range(len(devices)), key=share.__getitem__)[:_MOST_DOWN]
    return [devices[place] for place in sorted(least)]


def _gpus_down(devices: Sequence[DeviceTotals]) -> list[str]:
    causes = [(cause, _idle_for(cause)) for cause in MEANINGS]
    shown = [
        (name.strip(), measure)
        for name, measure in (*_BUSY, *causes)
        if any(measure(device) for device in devices)
    ]
    rows = [
        [_device(device), milliseconds(device.span_ns),
         *(percent(measure(device) / device.span_ns if device.span_ns else None)
           for _, measure in shown)]
        for device in devices
    ]  # fmt: skip
    return formatting.folded(rows, ["Time", "Span ms", *(f"{name} %" for name, _ in shown)], (0,))


def _idle_for(cause: str) -> Callable[[DeviceTotals], int]:
    return lambda device: device.idle.get(cause, 0)


def _device(device: DeviceTotals) -> str:
    rank = "" if device.rank is None else f"rank {device.rank}, "
    number = "" if device.device < 0 else f" {device.device}"  # below 0: not known
    return f"{rank}CPU" if device.on_cpu else f"{rank}GPU{number}"


def _time_row(
    name: str, devices: Sequence[DeviceTotals], measure: Callable[[DeviceTotals], int], meaning: str
) -> list[str]:
    cells = [name]
    for device in devices:
        ns = measure(device)
        cells += [milliseconds(ns), percent(ns / device.span_ns if device.span_ns else None)]
    return [*cells, meaning]


def phases(brief: Brief) -> Iterator[str]:
    """Tabulate GPU time by part of the step."""
    total_ns = sum(brief.phases.values()) or 1
    peak = brief.utilization.peak_flops
    rows = [
        (
            part_name(name),
            milliseconds(ns),
            percent(ns / total_ns),
            percent(brief.phase_work[name].mfu(peak)),
        )
        for name, ns in brief.phases.items()
    ]
    lines = formatting.table(rows, ("Part of the step", "ms", "%", "MFU(%)"), (0,))
    yield formatting.heading(lines[0])
    yield from lines[1:]


# --- ops, layers, lines -------------------------------------------------------------------------


def ops(brief: Brief, limit: int) -> Iterator[str]:
    """Tabulate the ops that take most time."""
    header = ("Op", "Direction", "Calls", _unit(brief), "%", "TFLOP/s", "GB/s", "Eff(%)",
              "Bound", "TC", "Line")  # fmt: skip
    rows = [_op(op) for op in brief.ops[:limit]]
    wide = formatting.widths(rows, header)
    gap = "  " if sum(wide) + 2 * (len(wide) - 1) <= formatting.WIDTH else " "
    rows = _fitted(rows, wide, formatting.WIDTH - len(gap) * (len(wide) - 1))
    lines = formatting.table(rows, header, (0, 1, 8, 9, 10), gap)
    yield formatting.heading(lines[0])
    yield from lines[1:]
    if rest := brief.ops[limit:]:
        share = sum(op.share for op in rest)
        yield _more(brief, len(rest), share, f"--top {len(brief.ops)}")
    yield from _above_peak(brief.ops[:limit])
    yield from _of_all(brief)


def _above_peak(ops: Sequence[OpTotals]) -> Iterator[str]:
    """Remark on rates that the device cannot reach, by what explains them."""
    names: dict[str, dict[str, None]] = {}
    for op in ops:
        if op.above_peak:
            names.setdefault(op.above_peak, {})[formatting.cut(op.op or op.kernel, _NAME_WIDTH)] = (
                None
            )
    for reason, these in names.items():
        few, more = [*these][:_SHOWN], len(these) - _SHOWN
        listed = ", ".join(few) + (f" and {more} more" if more > 0 else "")
        yield from formatting.wrapped(f"Above the peak: {listed}: {reason}.", "")


def _more(brief: Brief, left_out: int, share: float, option: str) -> str:
    """Say what a table leaves out, and the option that shows it."""
    time = f"{percent(share)} % of {brief.coverage.processor} time"
    return f"... and {left_out} more, {time} ({option})"


def _fitted(rows: Sequence[Sequence[str]], wide: Sequence[int], room: int) -> list[list[str]]:
    """Cut ops, in the first column, and lines, in the last, as far as the table is too wide."""
    op, line = 0, len(wide) - 1
    left = room - sum(wide[1:-1])
    for_line = max(min(wide[line], left // 2), left - wide[op])
    for_op = left - min(for_line, wide[line])
    cut = {
        op: partial(formatting.cut, width=for_op),
        line: partial(formatting.cut_left, width=for_line),
    }
    return [
        [cut[place](cell) if place in cut else cell for place, cell in enumerate(row)]
        for row in rows
    ]


def _unit(brief: Brief) -> str:
    return "ms/step" if brief.step_count else "ms"


def _of_all(brief: Brief) -> Iterator[str]:
    """Say what times are of: which GPUs, and that shares are of work outside of steps, too."""
    steps = brief.step_count
    inside = sum(op.step_ns for op in brief.ops) * (steps or 0)
    if steps and inside < _ALL_INSIDE * brief.coverage.total_ns:
        yield f"ms/step is the mean of {steps} steps; shares and calls include work outside them."
    gpus = len(brief.times.devices) if brief.times else 1
    if gpus > 1:
        yield f"Times are of all {gpus} GPUs together."


def _op(op: OpTotals) -> list[str]:
    return [
        formatting.cut(op.op or op.kernel, _NAME_WIDTH),
        part_name(op.dir),
        str(op.calls),
        milliseconds(op.step_ns),
        percent(op.share),
        number(op.flops_per_s and op.flops_per_s / 1e12),
        number(op.bytes_per_s and op.bytes_per_s / 1e9),
        percent(op.efficiency),
        op.bound or UNKNOWN,
        op.tc or UNKNOWN,
        formatting.short_line(op.line),
    ]


def layers(brief: Brief, depth: int | None) -> Iterator[str]:
    """Draw the tree of modules with time inside each, and of its own."""
    root, unit = named(brief.layers), _unit(brief)
    total_ns = root.total_ns or 1
    rows = [
        [
            f"{_indented(level)}{node.name or 'all'}",
            milliseconds(node.step_ns),
            percent(node.total_ns / total_ns),
            milliseconds(node.self_step_ns),
            percent(node.self_ns / total_ns),
            str(node.rows),
        ]
        for level, node in root.walk()
        if depth is None or level <= depth
    ]
    header = ("Layer", unit, "%", f"Own {unit}", "%", "Kernels")
    wide = formatting.widths(rows, header)
    room = formatting.WIDTH - sum(wide[1:]) - 2 * (len(wide) - 1)
    rows = [[formatting.cut(row[0], room), *row[1:]] for row in rows]
    lines = formatting.table(rows, header, (0,))
    yield formatting.heading(lines[0])
    yield from lines[1:]
    yield "Own: without the layers inside."
    yield from _of_all(brief)


_ALL_INSIDE = 0.999


def _indented(level: int) -> str:
    return "  " * level if level <= _MOST_INDENTED else f"{'  ' * _MOST_INDENTED}({level}) "


_MOST_INDENTED = 16
"""Levels of a tree that indentation shows; deeper ones are numbered."""


def advice(entries: Sequence[Advice], scope: Scope | None = None) -> Iterator[str]:
    """List potential gains, largest first, with the places to look at, and what is missing."""
    yield from _gains(entries)
    for sentence in scope.sentences(found=bool(entries)) if scope is not None else ():
        yield from formatting.wrapped(sentence)


def _gains(entries: Sequence[Advice]) -> Iterator[str]:
    if not entries:
        return
    yield formatting.heading("Potential gains (upper bounds; gains overlap and do not add up)")
    for entry in entries:
        gain = milliseconds(entry.gain_ns) if entry.gain_ns is not None else "?"
        yield from formatting.wrapped(entry.title, f"{gain:>10} ms  ")
        yield from formatting.wrapped(entry.action, _UNDER)
        for evidence in entry.evidence[:_SHOWN]:
            yield from formatting.wrapped(_evidence(evidence), f"{_UNDER}- ")


_SHOWN = 3
_UNDER = " " * len("     1.000 ms  ")


def _evidence(evidence: Evidence) -> str:
    place = f" at {formatting.short_line(evidence.line)}" if evidence.line else ""
    detail = f" ({evidence.detail})" if evidence.detail else ""
    what = formatting.cut(evidence.what, _NAME_WIDTH)
    return f"{what}{place}: {milliseconds(evidence.total_ns)} ms in {evidence.count}{detail}"


def slowest_lines(brief: Brief, limit: int) -> Iterator[str]:
    """Tabulate the slowest lines, where lines are known."""
    if any(op.line for op in brief.ops):
        yield from line_table(brief, limit, "Slowest lines")
        yield ""


def slowest_on_host(brief: Brief, limit: int) -> Iterator[str]:
    """Tabulate the ops that take most of the host's time, where a capture tells."""
    if brief.host is not None and brief.host.num_rows:
        yield from _host_rows(brief, limit, "--by host")
        yield ""


def host_table(brief: Brief, limit: int) -> Iterator[str]:
    """Tabulate what the host spent in ops, the most time of their own first, beside GPU time."""
    if brief.host is None:
        yield f"Host time by op is unknown: {UNKNOWN_HOST}, and without --where."
        return
    yield from _host_rows(brief, limit, f"--top {brief.host.num_rows}")
    yield from formatting.wrapped(
        f"Self: without the ops called inside. {brief.coverage.processor} ms: of what counts for"
        " the op; -: the op around it has it."
    )


def _host_rows(brief: Brief, limit: int, option: str) -> Iterator[str]:
    every = by_op(brief.host).to_pylist() if brief.host is not None else []
    every.sort(key=lambda op: (-op["cpu_self"], op["op"]))
    total_ns = sum(op["cpu_self"] for op in every) or 1
    gpu_ns: dict[str | None, int] = {}
    for entry in brief.ops:
        gpu_ns[entry.op] = gpu_ns.get(entry.op, 0) + entry.total_ns
    rows = [
        [
            formatting.cut(op["op"], _NAME_WIDTH), str(op["cpu_calls"]),
            milliseconds(op["cpu_self"]),
            percent(op["cpu_self"] / total_ns), milliseconds(op["cpu_total"]),
            number(op["cpu_total"] / op["cpu_calls"] / 1e3 if op["cpu_calls"] else None),
            milliseconds(gpu_ns.get(op["op"], None if op["launches"] else 0)),
            formatting.short_line(op["line"]),
        ]
        for op in every[:limit]
    ]  # fmt: skip
    header = ("Host time by op", "Calls", "Self ms", "%", "Total ms", "Mean us",
              f"{brief.coverage.processor} ms", "Line")  # fmt: skip
    yield from formatting.fitted(rows, header, (0, 7), {0: formatting.cut, 7: formatting.cut_left})
    if rest := every[limit:]:
        share = percent(sum(op["cpu_self"] for op in rest) / total_ns)
        yield f"... and {len(rest)} more, {share} % of host time in ops ({option})"


def line_table(brief: Brief, limit: int, title: str = "Line") -> Iterator[str]:
    """Tabulate GPU time by source line: by what each launched itself, the most time first."""
    total: dict[str | None, int] = {}
    step: dict[str | None, float] = {}
    calls: dict[str | None, int] = {}
    names: dict[str | None, dict[str, None]] = {}
    for op in brief.ops:
        total[op.line] = total.get(op.line, 0) + op.total_ns
        step[op.line] = step.get(op.line, 0.0) + op.step_ns
        calls[op.line] = calls.get(op.line, 0) + op.calls
        names.setdefault(op.line, {})[op.op or op.kernel] = None
    total_ns = sum(total.values()) or 1
    ordered = sorted(total, key=lambda line: (-total[line], line or ""))
    rows = [
        (line or "unknown line", str(calls[line]), milliseconds(step[line]),
         percent(total[line] / total_ns), formatting.cut(", ".join(names[line]), _NAME_WIDTH))
        for line in ordered[:limit]
    ]  # fmt: skip
    header = (title, "Calls", _unit(brief), "%", "Ops")
    wide = formatting.widths(rows, header)
    room = formatting.WIDTH - sum(wide[1:]) - 2 * (len(wide) - 1)
    shown = formatting.table(
        [[formatting.cut_left(row[0], room), *row[1:]] for row in rows], header, (0, 4)
    )
    yield formatting.heading(shown[0])
    yield from shown[1:]
    if rest := ordered[limit:]:
        share = sum(total[line] for line in rest) / total_ns
        more = f"--top {len(ordered)}" if title == "Line" else "--by line"
        yield _more(brief, len(rest), share, more)
    if title == "Line":
        yield from _of_all(brief)
