"""Figures of a page, each as the JSON from which `static/figures.js` draws it: no server.

A figure has a `kind`, the name of what draws it, and a `label`, a description of what it shows.
Colours belong to the page's themes, not to the data: a figure names classes, and the page colours
them.
"""

from __future__ import annotations

from collections import Counter
from statistics import median
from typing import TYPE_CHECKING, Any

import numpy as np

from pyprof.answers.page.report_answer import KINDS_OF_WORK, PAUSED
from pyprof.prof.processor import CPU
from pyprof.quantities import counted, duration, number
from pyprof.render.idle_causes import meanings
from pyprof.render.page.tables import device_name
from pyprof.render.roofline_legend import BOUNDS, UNKNOWN_BOUND, rates
from pyprof.render.text.formatting import percent, short_line

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyprof.answers.page.report_answer import (
        DeviceSteps,
        Lane,
        Lanes,
        StripRow,
        Strips,
    )
    from pyprof.answers.page.roofline_answer import Point, Roof
    from pyprof.answers.summary_answer import StepTimes
    from pyprof.render.page.cross_filter import FilterData
    from pyprof.render.page.parts.totals.modules import IcicleBox

WORK = {"compute": "#3b82c4", "communication": "#d9822b", "copy": "#8e6bbf"}
IDLE = {
    "host": "#c2514a", "launch": "#e0913a", "sync": "#c9a227", "copy": "#8e6bbf",
    "alloc": "#c8649b", "load": "#7d8794", "queue": "#3f9fb0", "peer": "#5a78c8",
    "graph": "#7fa650", "unknown": "#b9bfc6", PAUSED: "#dfe3e7",
    "loading": "#5b8f87", "ops": "#a97c50", "dispatch": "#e0913a",
}  # fmt: skip
"""Colours of the causes of idle time."""
SHARES = {"MFU": "#3b82c4", "HFU": "#d9822b", "MBU": "#3f9f6b"}
SHARED_CLOCK = "first kernel"
"""Figures that share it move and zoom together."""
MIN_WIDTH, MAX_BOXES = 0.001, 3000
"""Boxes of a tree narrower than this share of all, less than 2 pixels, are left out; so are the
narrowest of very many."""
_MAX_LABELS = 5
_TERA = 1e12


def roofline(
    points: Sequence[Point], roofs: Sequence[Roof], keys: Sequence[str | None] = ()
) -> Mapping[str, Any]:
    """Draw what ops achieve over their arithmetic intensity, below the roofs of their device.

    The points with most time are labelled. Rings show ops by the DRAM traffic that was measured.
    """
    return {
        "kind": "roofline",
        "label": f"Roofline: {counted(len(points), 'op')} under {counted(len(roofs), 'roof')}",
        "x": [point.intensity for point in points],
        "y": [point.flops_per_s / _TERA for point in points],
        "measured": [point.measured for point in points],
        "share": [point.share for point in points],
        "colour": [BOUNDS[point.bound or UNKNOWN_BOUND] for point in points],
        "name": [point.name for point in points],
        "tip": [_tip(point) for point in points],
        "key": list(keys) or [None] * len(points),
        "labelled": _MAX_LABELS,
        "roofs": [
            {"flops": roof.flops_per_s / _TERA, "bytes": roof.bytes_per_s / _TERA,
             "label": roof.label, "slope": f"{roof.bytes_per_s / 1e9:,.0f} GB/s"}
            for roof in roofs
        ],
    }  # fmt: skip


def _tip(point: Point) -> Sequence[tuple[str, str]]:
    line = short_line(point.line)
    others = f" and {point.lines - 1} more" if point.lines > 1 else ""
    return [
        ("op", point.name), ("line", f"{line}{others}"), ("kernel", point.kernel[:160]),
        ("time", f"{duration(point.time_ns)}, {100 * point.share:.1f} %"),
        ("achieved", rates(point)),
        ("efficiency", "unknown" if point.efficiency is None else f"{percent(point.efficiency)} %"),
        ("intensity", f"{number(point.intensity)} FLOP/byte"),
        ("bound", point.bound or UNKNOWN_BOUND),
        *([("by measured DRAM traffic", f"{number(point.measured)} FLOP/byte")]
          if point.measured else []),
    ]  # fmt: skip


def icicle(
    boxes: Sequence[IcicleBox], keys: Sequence[str | None], title: str, processor: str
) -> Mapping[str, Any]:
    """Draw a tree as boxes below their parents, as wide as their time."""
    return {
        "kind": "icicle",
        "label": f"{title}: {counted(len(boxes), 'box')}, as wide as their {processor} time",
        "axis": f"{processor} time",
        "start": [box.start_ns for box in boxes],
        "length": [box.total_ns for box in boxes],
        "depth": [box.depth for box in boxes],
        "colour": [box.colour for box in boxes],
        "name": [box.name for box in boxes],
        "path": [box.path for box in boxes],
        "times": [box.times for box in boxes],
        "key": list(keys),
    }


def strip(strips: Strips) -> Mapping[str, Any]:
    """Draw steps below each other, each bin as dark as it is busy; what stays empty is idle."""
    labels: list[str] = []
    rows: list[StripRow] = []
    times: Counter[str] = Counter()
    for device, of_device in strips.rows:
        name = device_name(device)
        times[name] += 1
        again = f" ({times[name]})" if times[name] > 1 else ""  # two processes of one rank
        start = f"{name}{again}: " if len(strips.rows) > 1 else ""
        labels += [f"{start}{_row_name(row)}" for row in of_device]
        rows += of_device
    left, right, busy, kind = (
        np.concatenate([row.bins[index] for row in rows]) for index in range(4)
    )
    return {
        "kind": "strips",
        "label": f"How busy the GPU was in {counted(len(rows), 'step')}",
        "names": labels,
        "lengths": [row.length_ns for row in rows],
        "row": np.repeat(np.arange(len(rows)), [len(row.bins[0]) for row in rows]),
        "left": np.rint(left).astype(int),
        "right": np.rint(right).astype(int),
        "busy": np.round(busy, 3),
        "work": [KINDS_OF_WORK[index] for index in kind.tolist()],
        "colours": WORK,
    }


def _row_name(row: StripRow) -> str:
    if row.step is None:
        return "all" if row.recording is None else f"window {row.recording}"
    return f"step {row.step} ({duration(row.length_ns)})"


def timeline(lanes: Lanes, selectable: FilterData) -> Mapping[str, Any]:
    """Draw each stream's kernels, coloured by family, op or layer, and why nothing ran."""
    streams = sum(len(each.lanes) for each in lanes.devices)
    devices = []
    for each in lanes.devices:
        gaps = {
            name: [gap[index] for gap in each.gaps]
            for index, name in enumerate(("start", "length", "cause"))
        }
        drawn = [_lane(lane, selectable) for lane in each.lanes]
        devices.append({"name": device_name(each.device), "gaps": gaps, "lanes": drawn})
    return {
        "kind": "timeline",
        "shares": SHARED_CLOCK,
        "label": f"What ran when on {counted(streams, 'stream')}",
        "length": lanes.length_ns,
        "devices": devices,
        "work": "op" if all(each.device.processor == CPU for each in lanes.devices) else "kernel",
        "causes": {
            name: [IDLE[name], meaning] for name, meaning in meanings_of_idle(lanes).items()
        },
        "marks": [(f"step {mark.step}", mark.start, mark.length) for mark in lanes.marks]
        if lanes.captures == 1
        else [],
        "views": [
            (f"{name} (step {mark.step}, {duration(mark.length)})", mark.start, mark.length)
            for name, mark in (("typical", lanes.typical), ("slowest", lanes.slowest))
            if mark is not None and len(lanes.marks) > 1
            if name == "typical" or mark != lanes.typical
        ],
    }


def meanings_of_idle(lanes: Lanes) -> Mapping[str, str]:
    """Return what causes of gaps mean."""
    of_devices = meanings(each.device.processor for each in lanes.devices)
    return {**of_devices, PAUSED: "the profiler was paused: what ran is not known"}


def _lane(lane: Lane, selectable: FilterData) -> Mapping[str, Any]:
    facts = selectable.numbers(lane.texts)
    families = selectable.numbers_of("family", lane.texts)
    return {
        "name": lane.name,
        "start": lane.start,
        "length": lane.length,
        "summed": np.where(lane.rows == 1, -1, lane.summed),  # -1: its length
        "rows": lane.rows,
        "fact": facts[lane.longest],
        "parts": {"box": lane.parts.box, "fact": facts[lane.parts.kind], "ns": lane.parts.ns},
        "rest": {"box": lane.rest.box, "family": families[lane.rest.kind], "ns": lane.rest.ns},
    }


_MAX_COLUMNS = 600


def trend(steps: StepTimes) -> Mapping[str, Any]:
    """Draw how long each step took, or the longest of each group if very many, with its shares."""
    first, median_ns = steps.shown.start, median(steps.averaged_ns or [0])
    values = np.asarray(steps.duration_ns[first : steps.shown.stop], float)
    group = max(-(-len(values) // _MAX_COLUMNS), 1)
    starts = range(0, len(values), group)
    longest = [start + int(values[start : start + group].argmax()) for start in starts]
    shown = [first + place for place in longest]
    return {
        "kind": "trend",
        "label": f"Time of {len(values)} steps; the median is {duration(median_ns)}",
        "longest": values[longest],
        "step": shown,
        "group": group,
        "first": first,
        "warm_up": 0 if steps.are_chosen else steps.warm_up_count,
        "median": median_ns,
        "shares": _shares(steps, shown),
    }


def _shares(steps: StepTimes, shown: Sequence[int]) -> Mapping[str, list[float | None]]:
    """MFU, HFU if it differs, and MBU, in percent; without what no step has."""
    mfu, hfu, mbu = ([each[step] for step in shown] for each in (steps.mfu, steps.hfu, steps.mbu))
    series = {"MFU": mfu, "HFU": hfu if hfu != mfu else [], "MBU": mbu}
    return {
        name: [None if value is None else round(100 * value, 3) for value in values]
        for name, values in series.items()
        if any(value is not None for value in values)
    }


def shares_of_peak(trend: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Draw how near the same steps came to the peaks; None if that is unknown for all of them."""
    series = trend["shares"]
    if not series:
        return None
    return {
        "kind": "shares",
        "label": f"{' and '.join(series)} of each step, percent of the peak",
        **{name: trend[name] for name in ("step", "group", "first", "warm_up")},
        "series": series,
        "colours": {name: SHARES[name] for name in series},
    }


def heat_map(times: DeviceSteps, first: int, last: int) -> Mapping[str, Any]:
    """Draw ranks below each other, each step coloured by its time relative to the median."""
    group = -(-(last - first) // _MAX_COLUMNS)
    end = min(last, times.steps)
    measures = {"computing": times.computing_ns, "step": times.duration_ns}
    return {
        "kind": "heat",
        "label": f"Time of {counted(last - first, 'step')} on each of {len(times.devices)} GPUs",
        "names": [*map(device_name, times.devices)],
        "measures": {
            name: [_longest_of_groups(ns, first, end, group) for ns in durations]
            for name, durations in measures.items()
        },
        "group": group,
        "first": first,
    }


def _longest_of_groups(
    duration_ns: np.ndarray, first: int, end: int, group: int
) -> list[int | None]:
    """Return the longest of every `group` steps; None where a rank has none of them."""
    shown = duration_ns[first:end]
    shown = np.concatenate([shown, np.full(max(end - first - len(shown), 0), np.nan)])
    longest = np.fmax.reduceat(shown, np.arange(0, len(shown), max(group, 1)))
    return [None if np.isnan(ns) else int(ns) for ns in longest.tolist()]
