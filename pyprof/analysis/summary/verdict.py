"""The verdict: what bounds the work, where most time goes, what to change first, what is missing.

Each sentence rests on evidence of the answer, and is left out without it.
"""

from __future__ import annotations

import re
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from pyprof.analysis.summary.op_totals import line_totals
from pyprof.answers.gains import gain_of, worth_a_look
from pyprof.answers.parts import Finding, Statement
from pyprof.answers.remedies import NO_REMEDY, around_each_step, explained
from pyprof.answers.summary_answer import PYTORCH
from pyprof.prof.calls.op_choice import UNLAUNCHED
from pyprof.prof.processor import CPU
from pyprof.quantities import duration, percent

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from pyprof.answers.parts import StepUse, Suggestion
    from pyprof.answers.summary_answer import LineTotal, OpTime, Summary

_IDLE = 0.25
"""From this share of the step on, idle time is what bounds it."""
_MAINLY = 0.5
"""Below this share of idle time, the verdict first says how busy the device is."""
_EXPOSED = 0.15
"""From this share of the step on, communication or copies that nothing overlaps bound it."""
_SECOND = 0.5
"""A second cause of idle time is named if it is at least this share of the first."""
_MIN_RECURRING = 0.05
"""Gains in the loop from this share on are named beside a larger one-time gain."""
_ALIKE = 0.9
"""Minimum mean step of all ranks, as a share of that of the slowest, for its range and median."""
_MUCH_UNKNOWN = 0.2
"""Costs that are unknown for less of the time are not an obstacle."""
_KNOWN = 0.5
"""Minimum share of the time with a known bound for a statement about the whole."""
_MAX_MISSING = 2
_MAX_FINDINGS = 5

_WHY_IDLE = {
    "launch": "the host launches too slowly",
    "sync": "the host waits for the GPU, which then has nothing queued",
    "copy": "copies hold up the host",
    "alloc": "the host allocates or frees memory",
    "load": "launches take over 1 ms, as when kernels are loaded or the profiler writes",
    "host": "the host does something other than launching",
    "queue": "queued work begins late, perhaps behind work that was not recorded",
    "peer": "queued work waits while another GPU of the process works",
    "graph": "between kernels of a CUDA graph's replay",
    "unknown": "launches are not in the capture",
    "loading": "the next batch is not ready",
    "compiling": "torch.compile compiles",
    "ops": "ops compute nothing: tensors of Python values, views, .item()",
    "dispatch": "Python, PyTorch's dispatch and the profiler take the time around ops",
}
_HOST_SERVES = f"{_WHY_IDLE['host']}, or waits for requests"
_RULE_OF = {
    "launch": ("launch_bound", "short_ops"),
    "sync": ("synchronisation",),
    "copy": ("blocking_copies", "pageable_copies"),
    "alloc": ("allocation",),
    "load": ("kernel_loading",),
    "queue": ("late_start",),
    "peer": ("gpus_in_turn",),
    "host": ("host_work", "ops_on_cpu", "python_work"),
    "loading": ("data_loading",),
    "compiling": ("compilation",),
    "ops": ("python_values",),
    "dispatch": ("short_ops",),
    "communication": ("communication",),
    "copies": ("exposed_copies", "pageable_copies", "unified_memory"),
}
"""The advice whose evidence proves each cause."""
_BOUND_BY = {
    "compute": "arithmetic bounds {share} of GPU time",
    "memory": "memory traffic bounds {share} of GPU time",
    "latency": "kernels too small to fill the GPU take {share} of GPU time",
}


def verdict(answer: Summary) -> tuple[Statement, ...]:
    """At most four sentences on an answer without a verdict; empty if nothing ran."""
    if not answer.known_cost.total_ns:
        return ()
    statements = (_bound(answer), _top(answer), _gain(answer), _missing(answer))
    return tuple(each for each in statements if each is not None and each.evidence)


def _bound(answer: Summary) -> Statement | None:
    use = answer.step
    if use is None or answer.chosen is not None or not use.span_ns:
        return None
    time_ns = use.span_ns - use.busy_ns
    exposed = {"communication": use.exposed_communication_ns, "copies": use.exposed_copy_ns}
    largest = max(exposed, key=lambda name: exposed[name])
    busy = f"{answer.processor} busy {percent(use.busy_ns / use.span_ns)} {_of_step(answer, use)}"
    if time_ns >= max(_IDLE * use.span_ns, exposed[largest]) and use.idle_by_cause_ns:
        subject, text = _idle(answer, use, time_ns)
        evidence = _idle_evidence(answer, use, subject)
    elif exposed[largest] >= _EXPOSED * use.span_ns:
        subject, time_ns = largest, exposed[largest]
        verb, part = ("takes", "comm") if subject == "communication" else ("take", "copy")
        share = f"{percent(time_ns / use.span_ns)} of it ({duration(time_ns)})"
        text = f"{busy}, but {subject} that nothing overlaps {verb} {share}."
        ops = [op for op in answer.ops if op.dir == part]
        evidence = _evidence_of(answer, subject) or _op_findings(ops)
    else:
        subject, time_ns = "kernels", use.busy_ns
        detail, visible = _what_computes(answer)
        text, evidence = f"{busy}: {detail}.", _op_findings(visible)
    return Statement(
        about="bound",
        subject=subject,
        text=text,
        time_ns=time_ns,
        share=time_ns / use.span_ns,
        evidence=evidence,
    )


def _of_step(answer: Summary, use: StepUse) -> str:
    time = duration(use.span_ns)
    if use.step_count is None:
        return f"of {time}"
    if spread := answer.steps.spread:  # of several ranks, that of the slowest in each step
        is_of_all = use.span_ns >= _ALIKE * (answer.steps.mean_ns or 0)
        return f"of a mean step of {time}{f' ({spread})' if is_of_all else ''}"
    return f"of {'an' if _WITH_VOWEL.match(time) else 'a'} {time} step"


_WITH_VOWEL = re.compile(r"8|1[18](?!\d)")
"""Numbers whose names begin with a vowel: 8, 80, 11, 18."""


def _idle(answer: Summary, use: StepUse, idle_ns: float) -> tuple[str, str]:
    """Return the main cause of idle time, and a sentence."""
    causes = _by_cause(answer, use)
    first, *others = sorted(causes, key=lambda cause: (-causes[cause], cause))
    named = [first, *(each for each in others[:1] if causes[each] >= _SECOND * causes[first])]
    reasons = {**_WHY_IDLE, "host": _HOST_SERVES} if answer.serving else _WHY_IDLE
    why = "; ".join(f"{reasons[each]} ({duration(causes[each])})" for each in named)
    if not use.waits_known and {"launch", "host"} & {*named}:
        why += "; this file lacks waits for the GPU, which count as such"
    on, share, of_step = answer.processor, idle_ns / use.span_ns, _of_step(answer, use)
    why = why.replace("GPU", on)
    if on == CPU:
        return first, f"No op runs for {percent(share)} {of_step}: {why}."
    if share >= _MAINLY:
        return first, f"{on} idle {percent(share)} {of_step}: {why}."
    busy = f"{on} busy {percent(1 - share)} {of_step}"
    return first, f"{busy}, but idle {percent(share)} of it: {why}."


def _by_cause(answer: Summary, use: StepUse) -> Mapping[str, float]:
    """Idle time by cause; time in ranges of data loading or compilation is a cause of its own."""
    causes = dict(use.idle_by_cause_ns)
    for own in ("compiling",) if answer.processor == CPU else ("compiling", "loading"):
        advice = _advice(answer, *_RULE_OF[own])
        waited_ns = (advice and (advice.gain_step_ns or advice.gain_ns)) or 0.0
        for cause in ("host", "launch", "ops", "dispatch"):
            moved = min(waited_ns, causes.get(cause, 0.0))
            if moved:
                causes[cause] -= moved
                causes[own] = causes.get(own, 0.0) + moved
                waited_ns -= moved
    return {cause: ns for cause, ns in causes.items() if ns > 0}


def _idle_evidence(answer: Summary, use: StepUse, cause: str) -> tuple[Finding, ...]:
    """The evidence of the advice on a cause, else the idle time; with rows that began late."""
    evidence = _evidence_of(answer, cause)
    if not evidence:  # the idle time of all GPUs in these steps
        time_ns = round(
            use.idle_by_cause_ns.get(cause, 0.0) * use.gpu_count * (use.step_count or 1)
        )
        late = use.late_row_ids.get(cause, ())
        idle = Finding(what=f"idle: {cause}", count=use.gpu_count, time_ns=time_ns, row_ids=late)
        evidence = (idle,) if time_ns else ()
    if evidence and not any(each.row_ids for each in evidence):  # ranges alone
        late = use.late_row_ids.get("host" if cause in ("loading", "compiling") else cause, ())
        return (replace(evidence[0], row_ids=late), *evidence[1:])
    return evidence


def _what_computes(answer: Summary) -> tuple[str, Sequence[OpTime]]:
    """What bounds the kernels if costs are known, else their kind; and the ops in question."""
    step_ns, visible = _step_ns(answer), _visible(answer)
    by_bound: dict[str, float] = {}
    for op in visible:
        if op.bound is not None:
            by_bound[op.bound] = by_bound.get(op.bound, 0.0) + _taken(op, step_ns)[0]
    if sum(by_bound.values()) >= _KNOWN * sum(_taken(op, step_ns)[0] for op in visible):
        bound = max(by_bound, key=lambda name: by_bound[name])
        ops = [op for op in visible if op.bound == bound]
        text = _BOUND_BY[bound].format(share=percent(by_bound[bound]))
        return text.replace("GPU", answer.processor), ops
    hides = not any(op.dir == "comm" for op in visible)
    no_family = (*_NO_FAMILY, "communication") if hides else _NO_FAMILY
    every = answer.step_families_ns if step_ns else answer.families_ns
    families = {name: ns for name, ns in every.items() if name not in no_family}
    largest = max(families, key=lambda name: families[name], default=None)
    if largest is not None and families[largest] >= _MUCH_UNKNOWN * sum(every.values()):
        share = percent(families[largest] / sum(every.values()))
        return f"{largest} takes {share} of {answer.processor} time", visible
    return "its kernels bound the work", visible


def _visible(answer: Summary) -> Sequence[OpTime]:
    """The ops of a step, without communication or copies if other work hides most of them."""
    if (use := answer.step) is None:
        return answer.ops
    step_ns = _step_ns(answer)
    visible = tuple(op for op in answer.ops if not step_ns or op.step_ns)
    exposed: tuple[tuple[Callable[[OpTime], bool], float], ...] = (
        (lambda op: op.dir == "comm", use.exposed_communication_ns),
        (lambda op: op.kernel.startswith("[CUDA_memcpy"), use.exposed_copy_ns),
    )
    for is_such, exposed_ns in exposed:
        taken_ns = sum(_taken(op, step_ns)[1] for op in answer.ops if is_such(op)) / use.gpu_count
        if exposed_ns < min(_EXPOSED * use.busy_ns, taken_ns / 2):
            visible = tuple(op for op in visible if not is_such(op))
    return visible or answer.ops


_NO_FAMILY = ("", "other", "unknown", "copy")


def _step_ns(answer: Summary) -> float:
    """Return the time of all ops in a mean step; 0 if times are not those of one."""
    return sum(op.step_ns or 0 for op in answer.ops) if answer.is_per_step else 0


def _taken(each: LineTotal | OpTime, step_ns: float) -> tuple[float, float]:
    """Return the share and the time that a line or an op takes of a step, or without, of all."""
    if not step_ns:
        return each.share, each.time_ns
    return (each.step_ns or 0) / step_ns, each.step_ns or 0


def _top(answer: Summary) -> Statement | None:
    """Name the line, or op, that takes most of a mean step; without steps, most of all time."""
    step_ns = _step_ns(answer)
    taken = partial(_taken, step_ns=step_ns)
    visible = _visible(answer)
    line = max((each for each in line_totals(visible) if each.line), key=taken, default=None)
    first = max(visible, key=taken, default=None)
    if line is not None and line.line and (first is None or taken(line) >= taken(first)):
        ops = sorted((op for op in visible if op.line == line.line), key=taken, reverse=True)
        where, (share, time_ns) = f"line {_short(line.line)}", taken(line)
        named = ", ".join(dict.fromkeys(op.op or op.kernel for op in ops[:_MAX_NAMED]))
        subject = line.line
    elif first is not None:
        ops = [first]
        share, time_ns = taken(first)
        subject = first.op or first.kernel
        where = f"{'op' if first.op else _kind(subject)} {subject}"
        at = f"at {_short(first.line)}" if first.line else ""
        named = at or (f"in {first.range}" if first.range else "")
    else:
        return None
    of_step = "a step's " if step_ns else ""
    return Statement(
        about="top",
        subject=subject,
        text=f"Top {where}: {percent(share)} of {of_step}{answer.processor} time"
        + (f" ({named})." if named else "."),
        time_ns=time_ns,
        share=share,
        evidence=_op_findings(ops),
    )


_MAX_NAMED = 2
_NO_KERNELS = {"[CUDA_memcpy": "copy", "[CUDA_memset": "fill", "[CUDA_graph": "CUDA graph"}


def _kind(name: str) -> str:
    return next((kind for start, kind in _NO_KERNELS.items() if name.startswith(start)), "kernel")


def _short(line: str) -> str:
    return line.replace("\\", "/").rpartition("/")[2]


def _gain(answer: Summary) -> Statement | None:
    """Name the first gain of a known size: the advice is in order."""
    gains = [each for each in worth_a_look(answer.advice) if each.gain_share is not None]
    first = next(iter(gains), None)
    if first is None or first.gain_ns is None:
        return None
    time_ns = first.gain_ns if first.gain_step_ns is None else first.gain_step_ns
    gain = gain_of(first)
    per_step = " a step" if gain.per_step else ", once" if first.once else ""
    size = f"{gain.time}{per_step} ({gain.share})"
    large = (each for each in gains if (each.gain_share or 0.0) >= _MIN_RECURRING)
    again = next((each for each in large if not each.once), None)
    more = ""
    if first.once and again is not None:
        more = f" In the loop, {gain_of(again).time}: {_first_clause(again.action)}."
    return Statement(
        about="gain",
        subject=first.rule,
        text=f"Largest gain, {size}: {_first_clause(first.action)}.{more}",
        time_ns=time_ns,
        share=first.gain_share,
        evidence=first.evidence[:_MAX_FINDINGS],
    )


def _first_clause(action: str) -> str:
    return action.partition(";")[0].rstrip(":")


def _missing(answer: Summary) -> Statement | None:
    obstacles = [*_obstacles(answer)][:_MAX_MISSING]
    if not obstacles:
        return None
    return Statement(
        about="missing",
        subject=obstacles[0][0],
        text=" ".join(text for _, text, _ in obstacles),
        time_ns=obstacles[0][2].time_ns,
        share=min(1.0, obstacles[0][2].time_ns / answer.known_cost.total_ns),
        evidence=tuple(finding for _, _, finding in obstacles),
    )


def _obstacles(answer: Summary) -> Iterator[tuple[str, str, Finding]]:
    """What prevents a better answer: its subject, a sentence, and the rows."""
    known, on = answer.known_cost, answer.processor
    rows = sum(op.kernels for op in answer.ops)
    first = answer.ops[0].row_ids if answer.ops else ()
    everything = partial(Finding, count=rows, time_ns=known.total_ns, row_ids=first)
    if on != CPU and not answer.peaks:
        text = (
            f"Peaks of the {on} unknown: add --gpu with its name, or flops= and bandwidth=,"
            " for efficiencies and more advice."
        )
        yield "gpu", text, everything(what="rows without a known peak")
    much = (each for each in known.unknown if each.time_ns >= _MUCH_UNKNOWN * known.total_ns)
    if (most := next(much, None)) is not None:
        reason, remedy = explained(most.reason)
        share = percent(most.time_ns / known.total_ns)
        text = f"Costs unknown for {share} of {on} time ({reason}): {remedy.partition(':')[0]}."
        if answer.library != PYTORCH:
            text = f"Costs unknown for {share} of {on} time: PyProf knows ops of PyTorch, and"
            other = f"this is {answer.library}" if answer.library else _NOT_PYTORCH
            text += f" {other}."
        if not remedy.startswith(NO_REMEDY):
            ids = next((op.row_ids for op in answer.ops if op.why == most.reason), ())
            finding = Finding(what=most.reason, count=most.rows, time_ns=most.time_ns, row_ids=ids)
            yield "costs", text, finding
    unlaunched = most is not None and most.reason == UNLAUNCHED  # nor is its step known
    if answer.steps.averaged_count is None and answer.chosen is None and not unlaunched:
        state = "Steps are only guessed" if answer.steps.count else "No steps found"
        around = around_each_step(answer.library)
        text = f"{state}: {around} gives times per step."
        yield "steps", text, everything(what="rows in no known step")


_NOT_PYTORCH = "no kernel here is known as PyTorch's"


def _advice(answer: Summary, *rules: str) -> Suggestion | None:
    return next((each for each in answer.advice if each.rule in rules and not each.once), None)


def _evidence_of(answer: Summary, cause: str) -> tuple[Finding, ...]:
    entry = _advice(answer, *_RULE_OF.get(cause, ()))
    return entry.evidence[:_MAX_FINDINGS] if entry is not None else ()


def _op_findings(ops: Sequence[OpTime]) -> tuple[Finding, ...]:
    return tuple(
        Finding(
            what=op.op or op.kernel,
            line=op.line,
            detail=op.range or "",
            count=op.kernels,
            time_ns=op.time_ns,
            row_ids=op.row_ids,
        )
        for op in ops[:_MAX_FINDINGS]
    )
