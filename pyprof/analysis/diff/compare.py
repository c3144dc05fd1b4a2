"""What changed from one capture to the other: in total, and op by op, and how sure that is."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from pyprof.analysis.diff import noise
from pyprof.analysis.diff.causes import with_causes
from pyprof.analysis.diff.estimates import COUNTED, Measured
from pyprof.analysis.diff.keys import renamed_layers
from pyprof.analysis.diff.noise import RANKS, STEPS, Interval
from pyprof.answers.diff_answer import (
    SAME_BELOW,
    UNCLEAR,
    Change,
    Diff,
    Measure,
    NoiseBasis,
    Stage,
    Status,
    StepCounts,
    held_text,
)
from pyprof.prof.processor import processor

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pyprof.analysis.diff.side import Key, Side, Sum, Sums

HELD = 0.8
"""Guessed steps that hold a smaller share of a capture's time do not represent it."""
_NO_STEPS = "no comparable steps were found"
_METHOD = "Welch's t interval; p of changes corrected as by Benjamini and Hochberg, by time"


def compare(a: Side, b: Side) -> Diff:
    """Compare two captures, or two sets of captures, summed up with the same options.

    They are compared per step if both have steps that were found in the same way, since they may
    then differ in length; else in total.
    """
    per_step, why_totals = _per_step(a, b)
    counted = [side.counted if per_step else None for side in (a, b)]
    sums = [
        steps.sums if steps else side.whole for side, steps in zip((a, b), counted, strict=True)
    ]
    filled = sums[0].filled & sums[1].filled
    keys = tuple(name for name in a.keys if name in filled)  # others would match nothing
    basis = _noise_basis(a, b, per_step, why_totals)
    sides = [
        Measured(side, steps, each, keys, basis.samples)
        for side, steps, each in zip((a, b), counted, sums, strict=True)
    ]
    renames = renamed_layers(keys, sides[0].calls, sides[1].calls)
    sides[0].rename(renames)
    changes = sorted(
        _changes(sides, {b_key: a_key for a_key, b_key in renames.items()}),
        key=lambda change: (-abs(change.change_ns), str(change.key)),
    )
    diff = Diff(
        processor=processor((*a.gpus, *b.gpus)),
        a_gpus=tuple(filter(None, a.gpus)),
        b_gpus=tuple(filter(None, b.gpus)),
        per_step=per_step,
        why_totals=why_totals,
        matched_by=keys,
        noise=basis,
        metrics={field: _measure(name, *sides) for name, field in METRICS.items()},
        causes=(),
        waterfall=tuple(waterfall(changes)),
        changes=tuple(changes),
        changes_left_out=0,
        failed=(),
        gpus=(a.gpus, b.gpus),
        common=(),
    )
    return with_causes(diff, a, b)


def _per_step(a: Side, b: Side) -> tuple[StepCounts | None, str]:
    """Return the steps of both if they were found in the same way; else None, and why.

    Guessed steps must also hold nearly all time of both, and what changed.
    """
    alike = a.steps.kind == b.steps.kind != ""
    counts = a.step_count, b.step_count
    if not (alike and all(counts)):
        return None, _NO_STEPS
    held = _held_share(a), _held_share(b)
    if a.steps.guessed and a.chosen is None:
        if min(held) < HELD:
            return None, f"the guessed steps hold only {held_text(*held)}"
        outside = [
            side.whole.time_ns * (1 - share) for side, share in zip((a, b), held, strict=True)
        ]
        change = abs(outside[1] - outside[0])
        shorter_ns = min(a.whole.time_ns, b.whole.time_ns)  # the answer is the same for B and A
        if counts[0] == counts[1] and change > SAME_BELOW * shorter_ns:
            return None, "what changed lies partly outside of the guessed steps"
    return StepCounts(*counts, *held), ""


def _held_share(side: Side) -> float:
    """Return the share of the time in the counted steps."""
    inside = side.counted.sums.time_ns if side.counted else 0
    return inside / side.whole.time_ns if side.whole.time_ns else 1.0


def _noise_basis(a: Side, b: Side, per_step: StepCounts | None, why_totals: str) -> NoiseBasis:
    """Choose steps or ranks as the samples; if neither will do, say why."""
    basis = partial(NoiseBasis, method=_METHOD, level_share=noise.LEVEL, enough=noise.FEW)
    steps = (per_step.a_count, per_step.b_count) if per_step else (0, 0)
    if min(steps) > 1:
        return basis(STEPS, *steps, "")
    ranks = (len(a.samples.ranks), len(b.samples.ranks))
    if min(ranks) > 1:
        return basis(RANKS, *ranks, "")
    if not per_step:
        why = why_totals if why_totals == _NO_STEPS else "steps are not compared"
        return basis(None, 0, 0, why)
    which = "A and B have" if max(steps) == 1 else "A has" if steps[0] == 1 else "B has"
    return basis(None, 0, 0, f"{which} one step only")


METRICS = {
    "time": "time_ns",
    "busy": "busy_ns",
    "idle": "idle_ns",
    "exposed": "exposed_ns",
    "step": "step_ns",
    "kernels": "kernels_count",
    "flops": "flops",
    "bytes": "bytes",
    "dram": "dram_bytes",
    "energy": "energy_j",
    "clock": "clock_hz",
    "tensor": "tensor_percent",
}
"""Metrics that `--fail-if` can limit, and the name of each in the answer, which has its unit."""


def _measure(name: str, a: Measured, b: Measured) -> Measure:
    before, after = a.metric(name), b.metric(name)
    apart = abs(_known_share(name, a.sums) - _known_share(name, b.sums))
    if before is None or after is None or apart > _SHARE:
        return Measure(before, after)
    change = after - before
    share = change / before if before else None
    estimates = a.metric_estimate(name), b.metric_estimate(name)
    if estimates[0] is None or estimates[1] is None:
        return Measure(before, after, change, share)
    certainty = noise.welch(estimates[0], estimates[1], medians=name == "step")
    (interval,) = noise.intervals(np.array([change]), *certainty)
    return Measure(before, after, change, share, *interval[:4])


def _known_share(name: str, sums: Sums) -> float:
    """The share of rows with a known metric; for counters, the share of their time."""
    if name in COUNTED:
        return sums.counters.known_share(name, sums.time_ns) if sums.counters else 0.0
    return sums.known.get(name, sums.rows) / max(sums.rows, 1)


_SHARE = 0.1
"""The most by which shares may differ: a comparison looks for changes of a few ops."""


def _changes(sides: Sequence[Measured], a_keys: Mapping[Key, Key]) -> Iterator[Change]:
    a, b = sides
    index = {key: number for number, key in enumerate({**a.rows, **b.rows})}
    a_times, b_times = a.times(index), b.times(index)
    intervals = [Interval()] * len(index)
    if a.unit is not None:
        estimates = a.estimates(a.unit, index), b.estimates(a.unit, index)
        half, p = noise.welch(*estimates)
        weight = estimates[0].value + estimates[1].value
        intervals = noise.intervals(b_times - a_times, half, noise.corrected(p, weight))
    columns = index, a_times.tolist(), b_times.tolist(), intervals
    for key, a_ns, b_ns, interval in zip(*columns, strict=True):
        before, after, a_key = a.rows.get(key), b.rows.get(key), a_keys.get(key)
        yield Change(
            key=dict(zip(a.keys, key, strict=True)),
            status=_status(before, after, a_ns, b_ns, interval),
            a_ns=a_ns if before else None,
            b_ns=b_ns if after else None,
            change_ns=b_ns - a_ns,
            change_share=(b_ns - a_ns) / a_ns if a_ns else None,
            low_ns=interval.low,
            high_ns=interval.high,
            p=interval.p,
            significant=interval.significant,
            a_calls=before.calls if before else None,
            b_calls=after.calls if after else None,
            a_rows=before.rows if before else None,
            b_rows=after.rows if after else None,
            causes=(),
            a_key=dict(zip(a.keys, a_key, strict=True)) if a_key else None,
            half_ns=interval.half,
        )


def _status(
    before: Sum | None, after: Sum | None, a_ns: float, b_ns: float, interval: Interval
) -> Status:
    if before is None or after is None:
        return "new" if before is None else "gone"
    if abs(b_ns - a_ns) <= SAME_BELOW * a_ns:
        return "same"
    if interval.significant is False:
        return UNCLEAR
    return "slower" if b_ns > a_ns else "faster"


MAX_STAGES = 8


def waterfall(changes: Sequence[Change], most: int = MAX_STAGES) -> list[Stage]:
    """Add up the changes by the first key, which is the op unless others were asked for.

    The `most` largest have a stage of their own; all stages add up to the change of the time.
    """
    delta_by_name: dict[str | None, float] = {}
    for change in changes:
        name = next(iter(change.key.values()), None)
        delta_by_name[name] = delta_by_name.get(name, 0.0) + change.change_ns
    ordered = sorted(delta_by_name.items(), key=lambda entry: (-abs(entry[1]), entry[0] or ""))
    moved = [(name, 1, delta) for name, delta in ordered if delta]
    shown = moved[:most]
    if rest := moved[most:]:
        shown.append(("all others", len(rest), sum(delta for _, _, delta in rest)))
    stages: list[Stage] = []
    time_ns = sum(change.a_ns or 0.0 for change in changes)
    for name, ops, delta in shown:
        stages.append(Stage(name, ops, delta, time_ns, time_ns + delta))
        time_ns += delta
    return stages
