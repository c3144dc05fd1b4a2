"""The headline numbers, parts of the step, causes of idle time, and each GPU on its own."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from pyprof.prof.processor import CPU
from pyprof.quantities import DASH, duration
from pyprof.render.idle_causes import meanings
from pyprof.render.page.tables import device_name, shares
from pyprof.render.text.formatting import part_name, percent
from pyprof.render.text.known_cost_text import without_copies
from pyprof.render.text.summary_text import SERVING_HEADER, USUAL_METHODS, known_flops, serving_rows

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pyprof.answers.summary_answer import Summary
    from pyprof.render.page.parts import Page

TITLE, ORDER = "Time", 10
_MAX_DEVICES = 64


def section(page: Page) -> Mapping[str, Any]:
    """The cards, and the tables below them."""
    answer = page.answer
    unusual = set(answer.found_by_ns) - {*USUAL_METHODS, ""}
    vias = shares(answer.found_by_ns) if unusual else []
    shown = devices(answer)
    return {
        "cards": list(cards(answer)),
        "phases": phases(answer),
        "serving_header": SERVING_HEADER,
        "serving": serving_rows(answer),
        "vias": [(name or "not found", time, part) for name, time, part in vias],
        "causes": _causes(answer),
        "notes": answer.notes,
        "devices": shown,
        "devices_left_out": len(answer.devices or ()) - len(shown),
    }


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
        idle = "no op ran" if on == CPU else "no stream had work"
        yield f"{on} idle", duration(span - busy), idle
        if any(device.communication_ns for device in devices):
            yield "communication exposed", duration(exposed), "while nothing was computed"
    steps = answer.steps
    if steps.averaged_count is not None:
        warm = steps.warm_up_count
        several = f"mean of {steps.averaged_count:,} of {steps.count:,} steps"
        note = several if steps.count > 1 else "the only one"
        note += f", without {warm} of warm-up" if warm and not steps.are_chosen else ""
        yield "a step", duration(steps.mean_ns), f"{note}; from {steps.described_origin}"
    use = answer.utilization
    if use.why:
        yield "MFU", "unknown", use.why
    else:
        yield "MFU", f"{percent(use.mfu)} %", f"of {use.peak_flops_label}{known_flops(use)}"
        yield "HFU", f"{percent(use.hfu)} %", "also counts recomputed work"
    if use.mbu is not None:
        yield "MBU", f"{percent(use.mbu)} %", "of memory bandwidth, in decode steps"
    note = f"of {on} time has a FLOP and byte count{without_copies(known)}"
    yield "cost known", f"{100 * known.known_share:.1f} %", note


def _causes(answer: Summary) -> list[tuple[str, str, str, float]]:
    """Name, meaning, time and share of each cause of idle time, the longest first."""
    total: Counter[str] = Counter()
    for device in answer.devices or ():
        total.update(device.idle_by_cause_ns)
    meaning = meanings(device.processor for device in answer.devices or ())
    return [
        (cause, meaning.get(cause, cause), time, part)
        for cause, time, part in shares(dict(total.most_common()))
        if total[cause]
    ]


def phases(answer: Summary) -> list[tuple[str, str, float, str | None]]:
    """Name, time and share of each part of a step, and its MFU if that is known."""
    total_ns = max(sum(part.time_ns for part in answer.parts), 1)
    return [
        (part_name(part.part), duration(part.time_ns), part.time_ns / total_ns,
         percent(part.mfu) if part.mfu is not None else None)
        for part in answer.parts
    ]  # fmt: skip


def devices(answer: Summary) -> list[tuple[str, list[str]]]:
    """For each GPU its name, and the values under the headings of the template."""
    return [
        (device_name(device), [
            duration(device.span_ns),
            f"{percent(device.busy_ns / device.span_ns if device.span_ns else None)} %",
            *(duration(ns) for ns in (device.busy_ns, device.idle_ns, device.compute_ns,
              device.communication_ns, device.exposed_communication_ns, device.copy_ns)),
            _main_cause(device.idle_by_cause_ns),
        ])
        for device in (answer.devices or ())[:_MAX_DEVICES]
    ]  # fmt: skip


def _main_cause(idle: Mapping[str, int]) -> str:
    cause = max(idle, key=lambda name: idle[name], default=None)
    return f"{cause} {duration(idle[cause])}" if cause is not None and idle[cause] else DASH
