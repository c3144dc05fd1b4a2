"""The answer of `pyprof diff`, made of a comparison."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyprof.answers.diff_answer import Change, Diff, Measure, NoiseBasis, Stage, StepCounts

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyprof.analysis.diff.compare import Change as FoundChange
    from pyprof.analysis.diff.compare import Comparison, Metric

MAX_STAGES = 8

_UNITS = {
    "ns": "_ns",
    "": "_count",
    "flop": "",
    "bytes": "_bytes",
    "j": "_j",
    "hz": "_hz",
    "%": "_percent",
}


def diff(comparison: Comparison, failed: Sequence[str] = (), top: int | None = None) -> Diff:
    """Build the answer with `top` changes, or all if None."""
    changes, counts, held = comparison.changes[:top], comparison.per_step, comparison.held
    return Diff(
        processor=comparison.processor,
        a_gpus=comparison.gpus[0],
        b_gpus=comparison.gpus[1],
        per_step=StepCounts(*counts, *held) if counts and held else None,
        why_totals=comparison.why_totals,
        matched_by=comparison.keys,
        noise=NoiseBasis(
            comparison.noise.unit,
            *comparison.noise.counts,
            comparison.noise.why,
            "Welch's t interval; p of changes corrected as by Benjamini and Hochberg, by time",
            comparison.noise.level,
            comparison.noise.enough,
        ),
        metrics={
            name if name == metric.unit else name + _UNITS[metric.unit]: _measure(metric)
            for name, metric in comparison.metrics.items()
        },
        causes=comparison.causes,
        waterfall=tuple(waterfall(comparison)),
        changes=tuple(_change(change, comparison.keys) for change in changes),
        changes_left_out=len(comparison.changes) - len(changes),
        failed=tuple(failed),
        common=comparison.common,
    )


def _measure(metric: Metric) -> Measure:
    interval, delta = metric.interval, metric.delta
    if interval is None or delta is None:
        sure = (None, None, None, None)
        return Measure(metric.a, metric.b, delta, metric.relative, *sure)
    ends = (delta - interval.half, delta + interval.half)
    return Measure(
        metric.a, metric.b, delta, metric.relative, *ends, interval.p, interval.significant
    )


def _change(change: FoundChange, keys: Sequence[str]) -> Change:
    a, b, interval = change.a, change.b, change.interval
    return Change(
        key=dict(zip(keys, change.key, strict=True)),
        status=change.status,
        a_ns=change.a_ns if a else None,
        b_ns=change.b_ns if b else None,
        change_ns=change.delta_ns,
        change_share=change.relative,
        low_ns=change.delta_ns - interval.half if interval else None,
        high_ns=change.delta_ns + interval.half if interval else None,
        p=interval.p if interval else None,
        significant=interval.significant if interval else None,
        a_calls=a.calls if a else None,
        b_calls=b.calls if b else None,
        a_rows=a.rows if a else None,
        b_rows=b.rows if b else None,
        causes=change.causes,
        a_key=dict(zip(keys, change.a_key, strict=True)) if change.a_key else None,
        half_ns=interval.half if interval else None,
    )


def waterfall(comparison: Comparison, most: int = MAX_STAGES) -> list[Stage]:
    """Add up the changes by the first key, which is the op unless others were asked for.

    The `most` largest have a stage of their own; all stages add up to the change of the time.
    """
    delta_by_name: dict[str | None, float] = {}
    for change in comparison.changes:
        name = change.key[0] if change.key else None
        delta_by_name[name] = delta_by_name.get(name, 0.0) + change.delta_ns
    ordered = sorted(delta_by_name.items(), key=lambda entry: (-abs(entry[1]), entry[0] or ""))
    moved = [(name, 1, delta) for name, delta in ordered if delta]
    shown = moved[:most]
    if rest := moved[most:]:
        shown.append(("all others", len(rest), sum(delta for _, _, delta in rest)))
    stages: list[Stage] = []
    time_ns = sum(change.a_ns for change in comparison.changes)
    for name, ops, delta in shown:
        stages.append(Stage(name, ops, delta, time_ns, time_ns + delta))
        time_ns += delta
    return stages
