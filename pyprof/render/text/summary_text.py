"""The summary as text: what a user reads first."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pyprof.answers.remedies import around_each_step
from pyprof.answers.summary_answer import NO_LAYER
from pyprof.quantities import amount, duration, number
from pyprof.render.idle_causes import MEANINGS, meanings
from pyprof.render.text import formatting, known_cost_text
from pyprof.render.text.formatting import milliseconds, part_name, percent
from pyprof.render.text.layout.text_width import cut_end, cut_middle, cut_start

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from pyprof.answers.parts import ChosenRows, Finding
    from pyprof.answers.summary_answer import DeviceUse, Fact, PeakUse, StepTimes, Summary

_MAX_ROWS = 5
"""Maximum rows of the tables besides the requested one."""
_NAME_WIDTH = 40
USUAL_METHODS = ("launch", "forward op")
"""How ops are found outside of graphs; methods are listed only if there are others."""


def details(answer: Summary, by: str) -> Iterator[str]:
    """What the first screen leaves out, with an empty line between sections."""
    if answer.chosen is not None and not answer.chosen.row_count:
        return
    yield from phases(answer)
    yield ""
    if by != "line" and any(line.line for line in answer.lines):
        yield from line_table(answer, _MAX_ROWS, "Slowest lines")
        yield ""
    if by != "host" and answer.host_ops:
        yield from _host_rows(answer, _MAX_ROWS, "--by host")
        yield ""
    if not answer.steps.spread:
        yield from _trend(answer.steps)
    for sentence in scope_sentences(answer):
        yield from formatting.wrapped(sentence)


def head(answer: Summary) -> Iterator[str]:
    """What was captured, which peaks are used, and which steps there are."""
    names = [name or "not named by the capture" for name in answer.gpus if name != "cpu"]
    label = answer.processor if names else "GPU"
    yield from formatting.labelled(
        label, "; ".join(names) or "none: these are ops timed on the CPU"
    )
    unknown = ("unknown: --gpu takes the device's name, or its peaks",) if names else ()
    yield from formatting.labelled("Peaks", *(answer.peaks or unknown))
    yield from formatting.labelled("Modelled", known_cost_text.sentence(answer.known_cost))
    if set(answer.found_by_ns) - {*USUAL_METHODS, ""}:
        total_ns = sum(answer.found_by_ns.values()) or 1
        methods = (
            f"{name or 'not found'} {percent(ns / total_ns)} %"
            for name, ns in answer.found_by_ns.items()
        )
        yield from formatting.labelled("Ops by", ", ".join(methods))
    yield from formatting.labelled("Steps", _steps(answer.steps, around_each_step(answer.library)))
    if answer.steps.spread:
        yield from _trend(answer.steps)
    if said := windows(answer):
        yield from formatting.labelled("Windows", said)
    if answer.chosen is None:
        yield from _utilization(answer.utilization)
    for fact in answer.facts:
        yield from formatting.labelled(fact.label, f"{fact_value(fact)}: {fact.meaning}")


def windows(answer: Summary) -> str:
    """How many parts of the run were recorded, and what lies between them; "" for a single one."""
    devices = answer.devices or ()
    count = max((device.windows for device in devices), default=1)
    paused = duration(max((device.paused_ns for device in devices), default=0))
    return f"{count}; {paused} between them left out" if count > 1 else ""


def fact_value(fact: Fact) -> str:
    """The number of a fact with its unit."""
    spellings: Mapping[str, Callable[[float], str]] = {
        "ns": duration,
        "bytes": lambda size: amount(size, "B"),
        "share": lambda share: f"{percent(share)} %",
    }
    return spellings.get(fact.unit, formatting.count)(fact.value)


def chosen_rows(chosen: ChosenRows | None, processor: str) -> Iterator[str]:
    """Which rows `--where` left, with a note that all other figures are for these alone."""
    if chosen is not None:
        all_ns = chosen.all_time_ns
        share = percent(chosen.time_ns / all_ns if all_ns else None)
        size = f"{chosen.row_count:,} of {chosen.all_row_count:,} rows"
        part = f"{size}, {share} % of {processor} time"
        yield from formatting.labelled(
            "Where", f"{chosen.where}: {part}; what follows is of these alone"
        )


def _steps(steps: StepTimes, ranges: str) -> str:
    if not steps.count:
        return f"none found; {ranges} shows them"
    parts = [f"{steps.count} by {steps.described_origin}"]
    if steps.averaged_count is None:
        return f"{parts[0]}, so times are totals; {ranges} gives times per step"
    if steps.are_chosen:
        last = f" to {steps.last}" if steps.last != steps.first else ""
        parts.append(f"shown: {steps.first}{last}")
    elif steps.warm_up_count:
        first, them = f"first {steps.warm_up_count} are", "them"
        if steps.warm_up_count == 1:
            first, them = "first is", "it"
        parts.append(
            f"the {first} slower: warm-up, excluded from the mean"
            f" (--steps {steps.warm_up_count}: excludes {them} from everything)"
        )
    several = f", the mean of {steps.averaged_count}" if steps.averaged_count > 1 else ""
    return f"{'; '.join(parts)}; a step takes {duration(steps.mean_ns)}{several}"


_LEVELS = "▁▂▃▄▅▆▇█"
_TREND = 60
"""Maximum characters of the trend; if there are more steps, each shows the slowest of several."""
_SLOWEST = 3


def _trend(steps: StepTimes) -> Iterator[str]:
    """Draw how long each step took, and name the slowest."""
    took = np.array(steps.duration_ns, np.int64)[steps.shown.start : steps.shown.stop]
    if len(took) < _SLOWEST or steps.averaged_count is None:
        return
    parts = np.array_split(took, min(len(took), _TREND))
    most = [int(part.max()) for part in parts]
    top = max(most) or 1
    line = "".join(_LEVELS[round(ns / top * (len(_LEVELS) - 1))] for ns in most)
    yield from formatting.labelled(
        "Trend", f"{line} {duration(int(took.min()))} to {duration(top)}"
    )
    order = np.argsort(-took, kind="stable")[:_SLOWEST]
    slow = [steps.shown.start + int(index) for index in order]
    named = (f"{index} ({', '.join(_describe_step(steps, index))})" for index in slow)
    yield from formatting.labelled("Slowest", f"step{'s' * (len(slow) > 1)} {', '.join(named)}")


def _describe_step(steps: StepTimes, place: int) -> Iterator[str]:
    yield duration(steps.duration_ns[place])
    if steps.phase and steps.phase[place]:
        tokens = steps.tokens[place]
        yield steps.phase[place] + (f" of {tokens:,} tokens" if tokens is not None else "")
    for name, share in (("MFU", steps.mfu[place]), ("MBU", steps.mbu[place])):
        if share is not None:
            yield f"{name} {percent(share)} %"


SERVING_HEADER = ("Phase", "Steps", "ms/step", "Tokens/step", "Tokens/s", "Padding%")


def serving_rows(answer: Summary) -> list[list[str]]:
    """The phases of a serving engine's steps as rows of a table."""
    return [
        [
            each.phase,
            str(each.steps),
            milliseconds(each.time_ns / each.steps),
            formatting.count(None if each.tokens is None else each.tokens / each.steps),
            number(each.tokens_per_s),
            percent(each.padding_share),
        ]
        for each in answer.serving
    ]


def serving(answer: Summary) -> Iterator[str]:
    """The table of these phases, if there are any."""
    if rows := serving_rows(answer):
        yield from formatting.headed(formatting.table(rows, SERVING_HEADER, (0,)))


def known_flops(use: PeakUse) -> str:
    """State the share of compute time that MFU and HFU rest on; "" if it rounds to 100 %."""
    share = percent(use.known_share)
    return "" if share == percent(1) else f"; FLOPs of {share} % of compute time known"


def _utilization(use: PeakUse) -> Iterator[str]:
    """How near the model's work came to the peaks, or why that is not known."""
    if use.why:
        yield from formatting.labelled("MFU", f"unknown: {use.why}")
    else:
        both = f"{percent(use.mfu)} %, HFU {percent(use.hfu)} %"
        again = use.hardware_flops - use.model_flops
        hardware = "; HFU also counts recomputed work" if again else ""
        peak = f"{number((use.peak_flops_per_s or 0) / 1e12)} TFLOP/s, {use.peak_flops_label}"
        yield from formatting.labelled("MFU", f"{both} of {peak}{hardware}{known_flops(use)}")
    if use.mbu is not None:
        peak = f"{number((use.peak_bytes_per_s or 0) / 1e9)} GB/s, {use.peak_bytes_label}"
        yield from formatting.labelled("MBU", f"{percent(use.mbu)} % of {peak}, in decode steps")


_Row = tuple[str, "Callable[[DeviceUse], int]"]

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


_MAX_ACROSS = 4
"""More GPUs than this have a line each, not a column."""
_MAX_DOWN = 64
"""Maximum number of GPUs listed; of more, the least busy ones are."""


def times(devices: Sequence[DeviceUse] | None, notes: Sequence[str]) -> Iterator[str]:
    """Tabulate where the time of each GPU went, if known; what is 0 everywhere is left out."""
    if devices is None:
        return
    lines = _gpus_across(devices) if len(devices) <= _MAX_ACROSS else None
    if lines is None:
        share = [device.busy_ns / max(device.span_ns, 1) for device in devices]
        least_busy = sorted(range(len(devices)), key=share.__getitem__)[:_MAX_DOWN]
        lines = _gpus_down([devices[index] for index in sorted(least_busy)])
    yield from formatting.headed(lines)
    if (left_out := len(devices) - _MAX_DOWN) > 0:
        yield f"... and {left_out} busier ones; pyprof ranks lists all"
    for note in notes:
        yield from formatting.wrapped(f"Note: {note}")


def _gpus_across(devices: Sequence[DeviceUse]) -> list[str] | None:
    """The table for a few GPUs, with an explanation of causes; None if it is too wide."""
    unit, format_time = formatting.common_unit(device.span_ns for device in devices)
    rows: list[list[str]] = []

    def add(name: str, measure: Callable[[DeviceUse], int], meaning: str = "") -> None:
        cells = [name]
        for device in devices:
            ns = measure(device)
            cells += [format_time(ns), percent(ns / device.span_ns if device.span_ns else None)]
        rows.append([*cells, meaning])

    add("span", lambda device: device.span_ns)
    for name, measure in _BUSY:
        if any(map(measure, devices)) or not name.startswith(" "):
            add(name, measure)
    for cause, meaning in meanings(device.processor for device in devices).items():
        if any(map(_idle_for(cause), devices)):
            add(f"  {cause}", _idle_for(cause), meaning)
    header = [f"Total ({unit})"]
    for device in devices:
        header += [_device(device), "%"]
    left = (0, 2 * len(devices) + 1)
    lines = formatting.table(rows, [*header, ""], left)
    if max(map(len, lines)) <= formatting.width():
        return lines
    lines = formatting.table([row[:-1] for row in rows], header, left)
    if max(map(len, lines)) > formatting.width():
        return None
    explained = [f"{row[0].strip()}: {row[-1]}" for row in rows if row[-1]]
    return [*lines, *(x for text in explained for x in formatting.wrapped(text, "  ", "    "))]


def _gpus_down(devices: Sequence[DeviceUse]) -> list[str]:
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
    return formatting.wrap_columns(
        rows, ["Time", "Span ms", *(f"{name} %" for name, _ in shown)], (0,)
    )


def _idle_for(cause: str) -> Callable[[DeviceUse], int]:
    return lambda device: device.idle_by_cause_ns.get(cause, 0)


def _device(device: DeviceUse) -> str:
    rank = "" if device.rank is None else f"rank {device.rank}, "
    number = "" if device.device is None else f" {device.device}"
    return f"{rank}CPU" if device.on_cpu else f"{rank}{device.processor}{number}"


def phases(answer: Summary) -> Iterator[str]:
    """Tabulate GPU time by part of the step, if any is known."""
    if all(part.part in (None, "copy") for part in answer.parts):
        yield "Parts of the step are unknown: no op is."
        return
    total_ns = sum(part.time_ns for part in answer.parts) or 1
    rows = [
        (
            part_name(part.part),
            milliseconds(part.time_ns),
            percent(part.time_ns / total_ns),
            percent(part.mfu),
        )
        for part in answer.parts
    ]
    yield from formatting.headed(
        formatting.table(rows, ("Part of the step", "Total ms", "%", "MFU(%)"), (0,))
    )


def below_ops(answer: Summary, limit: int) -> Iterator[str]:
    """The lines below a table of the first ops: what it leaves out, doubts, and its total."""
    if rest := answer.ops[limit:]:
        share = sum(op.share for op in rest)
        yield _describe_rest(answer, len(rest), share, f"--top {len(answer.ops)}")
    # rates that the device cannot reach, grouped by what explains them
    names: dict[str, dict[str, None]] = {}
    for op in answer.ops[:limit]:
        if op.above_peak:
            names.setdefault(op.above_peak, {})[cut_end(op.op or op.kernel, _NAME_WIDTH)] = None
    for reason, these in names.items():
        few, more = [*these][:_SHOWN], len(these) - _SHOWN
        listed = ", ".join(few) + (f" and {more} more" if more > 0 else "")
        yield from formatting.wrapped(f"Above the peak: {listed}: {reason}.", "")
    yield from _describe_scope(answer)


def _describe_rest(answer: Summary, left_out: int, share: float, option: str) -> str:
    """What a table leaves out, and the option that shows it."""
    time = f"{percent(share)} % of {answer.processor} time"
    return f"... and {left_out} more, {time} ({option})"


def time_column(
    answer: Summary, pairs: Iterable[tuple[float | None, float | None]]
) -> tuple[str, Callable[[float | None, float | None], str]]:
    """Return the unit that suits all times of a table, and a function that formats one.

    A time is a pair, ns in all and ns in a mean step; the latter shows if the verdict is per step.
    """
    per_step = answer.is_per_step

    def shown(time_ns: float | None, step_ns: float | None) -> float | None:
        return step_ns if step_ns is not None and per_step else time_ns

    unit, format_time = formatting.common_unit(shown(*pair) for pair in pairs)
    title = f"{unit}/step" if per_step else unit
    return title, lambda time_ns, step_ns: format_time(shown(time_ns, step_ns))


def _describe_scope(answer: Summary) -> Iterator[str]:
    """What times refer to: which GPUs, and that shares include work outside steps."""
    steps = answer.steps.averaged_count if answer.is_per_step else None
    inside = sum(op.step_ns or 0.0 for op in answer.ops) * (steps or 0)
    if steps and inside < _ALL_INSIDE * answer.known_cost.total_ns:
        times = "Times are those of the step" if steps == 1 else f"A step is the mean of {steps}"
        yield f"{times}; shares and calls include work outside {'it' if steps == 1 else 'them'}."
    count = len(answer.devices or ())
    if count > 1:
        yield f"Times are of all {count} {answer.processor}s together."


def layers(answer: Summary, depth: int | None) -> Iterator[str]:
    """Draw the tree of modules with time inside each, and of its own, if any is known."""
    if all(each.path in ((), (NO_LAYER,)) for each in answer.layers):
        yield from formatting.wrapped(
            "Layers are unknown: no module and no range of yours is around any work."
        )
        return
    unit, format_time = time_column(
        answer, [(each.time_ns, each.step_ns) for each in answer.layers]
    )
    total_ns = answer.layers[0].time_ns or 1
    rows = [
        [
            f"{_indent(len(each.path))}{each.path[-1] if each.path else 'all'}",
            format_time(each.time_ns, each.step_ns),
            percent(each.time_ns / total_ns),
            format_time(each.own_ns, each.own_step_ns),
            percent(each.own_ns / total_ns),
            str(each.rows),
        ]
        for each in answer.layers
        if depth is None or len(each.path) <= depth
    ]
    header = ("Layer", unit, "%", f"Own {unit}", "%", "Kernels")
    yield from formatting.layout_table(rows, header, (0,), {0: cut_end})
    yield "Own: without the layers inside."
    yield from _describe_scope(answer)


_ALL_INSIDE = 0.999


def _indent(level: int) -> str:
    return "  " * level if level <= _MAX_INDENTED else f"{'  ' * _MAX_INDENTED}({level}) "


_MAX_INDENTED = 16
"""Levels of a tree that indentation shows; deeper ones are numbered."""


def scope_sentences(answer: Summary) -> list[str]:
    """State where advice was looked for, unless some was found, and where not, with reasons."""
    missing = [
        f"Not looked at: {', '.join(subjects)}: {reason}."
        for reason, subjects in answer.advice_missing.items()
    ]
    if answer.advice:
        return missing
    if not answer.advice_looked_at:
        return ["No advice: nothing could be looked at.", *missing]
    looked_at = ", ".join(answer.advice_looked_at)
    return [f"No advice: nothing stands out in what was looked at: {looked_at}.", *missing]


_SHOWN = 3


def finding_text(finding: Finding) -> str:
    """Equal rows, their line, time and number: `linear at net.py:3: 1.26 ms in 4`."""
    index = f" at {formatting.short_line(finding.line)}" if finding.line else ""
    detail = f" ({finding.detail})" if finding.detail else ""
    room = max(_NAME_WIDTH, formatting.text_width() - _NAME_WIDTH)
    what = cut_middle(finding.what, room)
    return f"{what}{index}: {duration(finding.time_ns)} in {finding.count}{detail}"


def host_table(answer: Summary, limit: int) -> Iterator[str]:
    """Tabulate what the host spent in ops, the most time of their own first, beside GPU time."""
    if answer.host_ops is None:
        yield f"Host time by op is unknown: {answer.host_ops_why}."
        return
    yield from _host_rows(answer, limit, f"--top {len(answer.host_ops)}")
    yield from formatting.wrapped(
        f"Self: without the ops called inside. {answer.processor} ms: of what counts for"
        " the op; -: the op around it has it."
    )


def _host_rows(answer: Summary, limit: int, option: str) -> Iterator[str]:
    host = answer.host_ops or ()
    total_ns = sum(op.self_ns for op in host) or 1
    gpu_ns: dict[str | None, int] = {}
    for entry in answer.ops:
        gpu_ns[entry.op] = gpu_ns.get(entry.op, 0) + entry.time_ns
    rows = [
        [
            cut_end(op.op or "", _NAME_WIDTH),
            str(op.calls),
            milliseconds(op.self_ns),
            percent(op.self_ns / total_ns),
            milliseconds(op.total_ns),
            number(op.total_ns / op.calls / 1e3 if op.calls else None),
            milliseconds(gpu_ns.get(op.op, None if op.launches else 0)),
            formatting.short_line(op.line),
        ]
        for op in host[:limit]
    ]
    header = ("Host time by op", "Calls", "Self ms", "%", "Total ms", "Mean us",
              f"{answer.processor} ms", "Line")  # fmt: skip
    yield from formatting.layout_table(rows, header, (0, 7), {0: cut_end, 7: cut_start})
    if rest := host[limit:]:
        share = percent(sum(op.self_ns for op in rest) / total_ns)
        yield f"... and {len(rest)} more, {share} % of host time in ops ({option})"


def line_table(answer: Summary, limit: int, title: str = "Line") -> Iterator[str]:
    """Tabulate GPU time by source line: by what each launched itself, the longest first."""
    lines = answer.lines
    if not any(line.line for line in lines):
        yield from formatting.wrapped(
            "Lines are unknown: no call stacks were recorded; pyprof.init() records them."
        )
        return
    total_ns = sum(line.time_ns for line in lines) or 1
    unit, format_time = time_column(
        answer, [(line.time_ns, line.step_ns) for line in lines[:limit]]
    )
    rows = [
        (
            line.line or "unknown line",
            str(line.calls),
            format_time(line.time_ns, line.step_ns),
            percent(line.time_ns / total_ns),
            cut_end(", ".join(line.ops), _NAME_WIDTH),
        )
        for line in lines[:limit]
    ]
    header = (title, "Calls", unit, "%", "Ops")
    yield from formatting.layout_table(rows, header, (0, 4), {0: cut_start, 4: cut_end})
    if rest := lines[limit:]:
        share = sum(line.time_ns for line in rest) / total_ns
        more = f"--top {len(lines)}" if title == "Line" else "--by line"
        yield _describe_rest(answer, len(rest), share, more)
    if title == "Line":
        yield from _describe_scope(answer)
