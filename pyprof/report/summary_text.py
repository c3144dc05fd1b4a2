"""The overview as text: what a user reads first."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyprof.report import text
from pyprof.report.idle import CAUSES
from pyprof.report.text import UNKNOWN, duration, milliseconds, number, percent
from pyprof.report.timeline import BLOCKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from pyprof.report.advice import Advice, Evidence
    from pyprof.report.brief import Brief, DeviceTotals, Times
    from pyprof.report.topops import OpTotals

_PHASES = {
    "fprop": "forward",
    "bprop": "backward",
    "optim": "optimizer",
    "comm": "communication",
    "copy": "copies, fills of memory",
    "": "not told by any range",
}
_NAME_WIDTH = 40


def head(found: Brief) -> Iterator[str]:
    """Say what was captured, against which peaks it is measured, and which steps there are."""
    names = [name or "not named by the capture" for name in found.gpus if name != "cpu"]
    yield _labelled("GPU", "; ".join(names) or "none: these are ops, timed on the CPU")
    unknown = ("not known: name the device with --gpu",) if names else ()
    for place, peak in enumerate(found.peaks or unknown):
        yield _labelled("" if place else "Peaks", peak)
    yield _labelled("Modelled", found.known.text)
    yield _labelled("Steps", _steps(found))
    yield from _windows(found)


def _labelled(label: str, value: str) -> str:
    return f"{text.heading(label.ljust(9))} {value}"


def _steps(found: Brief) -> str:
    steps = found.steps
    if not len(steps):
        return "none found; call pyprof.annotate('step') around each to see them"
    part = " (steps, or a part of one)" if steps.origin.startswith("repetition") else ""
    parts = [f"{len(steps)} by {steps.origin}{part}, median {duration(steps.median_ns)}"]
    if found.chosen is not None:
        first, last = found.chosen
        parts.append(f"shown: {first} to {last - 1}")
    elif steps.warm_up:
        parts.append(
            f"the first {steps.warm_up} slower, left out of the median: warm-up"
            f" (--steps {steps.warm_up}: leaves them out of everything)"
        )
    return "; ".join(parts)


def _windows(found: Brief) -> Iterator[str]:
    """Say that the profiler was paused, and how often and long at most on a GPU."""
    devices = found.times.devices if found.times else ()
    windows = max((device.windows for device in devices), default=1)
    if windows > 1:
        paused = duration(max(device.paused_ns for device in devices))
        yield _labelled("Windows", f"{windows}; {paused} between them left out")


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


def times(found: Times) -> Iterator[str]:
    """Tabulate where the time of each GPU went; what is 0 everywhere is left out."""
    across = len(found.devices) <= _MOST_ACROSS
    lines = _gpus_across(found.devices) if across else _gpus_down(_least_busy(found.devices))
    yield text.heading(lines[0])
    yield from lines[1:]
    if (left_out := len(found.devices) - _MOST_DOWN) > 0:
        yield f"... and {left_out} busier ones; pyprof ranks lists all"
    yield from _notes(found)


def _gpus_across(devices: Sequence[DeviceTotals]) -> list[str]:
    rows = [_time_row("span", devices, lambda device: device.span_ns, "")]
    above = 0
    for name, measure in _BUSY:
        above = above if name.startswith(_INDENTED) else max(map(measure, devices))
        if any(map(measure, devices)) or not name.startswith(" "):
            rows.append(_time_row(name, devices, measure, ""))
    for cause, meaning in CAUSES.items():
        if any(device.idle[cause] and not device.on_cpu for device in devices):
            rows.append(
                _time_row(f"  {cause}", devices, lambda device: device.idle[cause], meaning)  # noqa: B023 - called at once
            )
    header = ["Time (ms)"]
    for device in devices:
        header += [_device(device), "%"]
    return text.table(rows, [*header, ""], (0, 2 * len(devices) + 1))


def _least_busy(devices: Sequence[DeviceTotals]) -> Sequence[DeviceTotals]:
    """Choose the GPUs to list, in their order."""
    share = [device.busy_ns / max(device.span_ns, 1) for device in devices]
    least = sorted(range(len(devices)), key=share.__getitem__)[:_MOST_DOWN]
    return [devices[place] for place in sorted(least)]


def _gpus_down(devices: Sequence[DeviceTotals]) -> list[str]:
    causes = [(cause, _idle_for(cause)) for cause in CAUSES]
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
    return text.table(rows, ["Time", "Span ms", *(f"{name} %" for name, _ in shown)], (0,))


def _idle_for(cause: str) -> Callable[[DeviceTotals], int]:
    return lambda device: device.idle[cause]


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


def _notes(found: Times) -> Iterator[str]:
    if found.blocking:
        yield f"Note: {BLOCKING}."
    if found.left_out:
        yield f"Note: times are those of {len(found.devices)} GPUs; {found.left_out} were left out."
    if not found.api_known and not all(device.on_cpu for device in found.devices):
        yield "Note: this file lacks waits for the GPU, which count as launch or host."


def phases(found: Brief) -> Iterator[str]:
    """Tabulate GPU time by part of the step."""
    whole = sum(found.phases.values()) or 1
    rows = [
        (_PHASES[name], milliseconds(ns), percent(ns / whole)) for name, ns in found.phases.items()
    ]
    lines = text.table(rows, ("Part of the step", "ms", "%"), (0,))
    yield text.heading(lines[0])
    yield from lines[1:]


# --- ops, layers, lines -------------------------------------------------------------------------


def ops(found: Brief, limit: int) -> Iterator[str]:
    """Tabulate the ops that take most time."""
    steps = found.step_count
    header = ("Op", "Dir", "Calls", _unit(found), "%", "TFLOP/s", "GB/s", "Eff(%)",
              "Bound", "TC", "Line")  # fmt: skip
    rows = [_op(op, steps or 1) for op in found.ops[:limit]]
    lines = text.table(rows, header, (0, 1, 8, 9, 10))
    yield text.heading(lines[0])
    yield from lines[1:]
    if rest := found.ops[limit:]:
        share = sum(op.share for op in rest)
        yield f"... and {len(rest)} more, {percent(share)} % of GPU time (--top {len(found.ops)})"


def _unit(found: Brief) -> str:
    gpus = len(found.times.devices) if found.times else 1
    unit = "ms/step" if found.step_count else "ms"
    return f"{unit}, {gpus} GPUs" if gpus > 1 else unit


def _op(op: OpTotals, steps: int) -> list[str]:
    return [
        text.cut(op.op or op.kernel, _NAME_WIDTH),
        op.dir or UNKNOWN,
        str(op.calls),
        milliseconds(op.total_ns / steps),
        percent(op.share),
        number(op.flops_per_s and op.flops_per_s / 1e12),
        number(op.bytes_per_s and op.bytes_per_s / 1e9),
        percent(op.efficiency),
        op.bound or UNKNOWN,
        op.tc or UNKNOWN,
        text.short_line(op.line),
    ]


def layers(found: Brief, depth: int | None) -> Iterator[str]:
    """Draw the tree of modules with time inside each, and of its own."""
    root, steps = found.layers, found.step_count
    unit = _unit(found)
    whole = root.total_ns or 1
    rows = [
        (
            f"{_indented(level)}{node.name or 'all'}",
            milliseconds(node.total_ns / (steps or 1)),
            percent(node.total_ns / whole),
            milliseconds(node.self_ns / (steps or 1)),
            percent(node.self_ns / whole),
            str(node.rows),
        )
        for level, node in root.walk()
        if depth is None or level <= depth
    ]
    header = ("Layer", f"{unit} with children", "%", f"{unit} of its own", "%", "Kernels")
    lines = text.table(rows, header, (0,))
    yield text.heading(lines[0])
    yield from lines[1:]


def _indented(level: int) -> str:
    return "  " * level if level <= _MOST_INDENTED else f"{'  ' * _MOST_INDENTED}({level}) "


_MOST_INDENTED = 32
"""Levels of a tree that are told by where a name stands; below by their number."""


def advice(found: Sequence[Advice]) -> Iterator[str]:
    """List what could be won, the most first, with the places to look at."""
    if not found:
        yield "Nothing that pyprof knows to advise on stands out."
        return
    yield text.heading("What could be won (at most; gains overlap, they do not add up)")
    for entry in found:
        gain = milliseconds(entry.gain_ns) if entry.gain_ns is not None else "?"
        yield f"{gain:>10} ms  {entry.title}"
        yield f"{'':14} {entry.action}"
        for evidence in entry.evidence[:_SHOWN]:
            yield f"{'':14} - {_evidence(evidence)}"


_SHOWN = 3


def _evidence(evidence: Evidence) -> str:
    place = f" at {text.short_line(evidence.line)}" if evidence.line else ""
    detail = f" ({evidence.detail})" if evidence.detail else ""
    what = text.cut(evidence.what, _NAME_WIDTH)
    return f"{what}{place}: {milliseconds(evidence.total_ns)} ms in {evidence.count}{detail}"


def lines(found: Brief, limit: int) -> Iterator[str]:
    """Tabulate GPU time by source line."""
    steps = found.step_count
    total: dict[str | None, int] = {}
    calls: dict[str | None, int] = {}
    names: dict[str | None, dict[str, None]] = {}
    for op in found.ops:
        total[op.line] = total.get(op.line, 0) + op.total_ns
        calls[op.line] = calls.get(op.line, 0) + op.calls
        names.setdefault(op.line, {})[op.op or op.kernel] = None
    whole = sum(total.values()) or 1
    ordered = sorted(total, key=lambda line: (-total[line], line or ""))
    rows = [
        (line or "no line known", str(calls[line]), milliseconds(total[line] / (steps or 1)),
         percent(total[line] / whole), text.cut(", ".join(names[line]), _NAME_WIDTH))
        for line in ordered[:limit]
    ]  # fmt: skip
    header = ("Line", "Calls", _unit(found), "%", "Ops")
    shown = text.table(rows, header, (0, 4))
    yield text.heading(shown[0])
    yield from shown[1:]
    if rest := ordered[limit:]:
        share = sum(total[line] for line in rest) / whole
        yield f"... and {len(rest)} more, {percent(share)} % of GPU time (--top {len(ordered)})"
