"""A comparison as texts, alike in every output."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyprof.report.comparison.compare import SAME_BELOW
from pyprof.report.numbers import amount, change, count
from pyprof.report.text import UNKNOWN, duration

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pyprof.report.comparison.compare import Change, Comparison

LABELS = {
    "time": "{} time, summed",
    "busy": "{} busy",
    "idle": "{} idle",
    "step": "median step",
    "kernels": "kernels and copies",
    "flops": "FLOPs, where known",
    "bytes": "bytes needed, where known",
}
NOTHING = f"no op changed by more than {100 * SAME_BELOW:g} %"
"""Stands for a list of changes without any."""
METRIC_HEADER = ("", "A", "B", "change", "change (%)")


def basis(found: Comparison) -> str:
    """Say what the numbers are of."""
    if found.per_step is None:
        return "totals of both captures (no steps that mean the same were found)"
    a, b = found.per_step
    return f"per step: A has {a:,}, B {b:,}"


def metrics(found: Comparison) -> Iterator[tuple[str, ...]]:
    """Give a row for each metric that is known in one of them."""
    for metric in found.metrics.values():
        if metric.a is None and metric.b is None:
            continue
        a, b, delta = (_spelt(value, metric.unit) for value in (metric.a, metric.b, metric.delta))
        yield (
            LABELS[metric.name].format(found.processor),
            a,
            b,
            _signed(delta, metric.delta),
            change(metric.relative),
        )


def _spelt(value: float | None, unit: str) -> str:
    if unit == "ns":
        return duration(value)
    return amount(value, {"flop": "FLOP", "bytes": "B"}[unit]) if unit else count(value)


def _signed(text: str, value: float | None) -> str:
    return f"+{text}" if value is not None and value > 0 else text


def header(found: Comparison) -> tuple[str, ...]:
    """Name the columns of `changes`."""
    return (*found.keys, "", "A", "B", "change", "change (%)", "calls A", "calls B")


def changes(found: Comparison, limit: int | None) -> Iterator[tuple[str, ...]]:
    """Give a row for each op that changed, the largest difference first."""
    for entry in found.differing[:limit]:
        yield (*_names(entry.key), *numbers(entry))


def _names(key: Sequence[str | None]) -> Iterator[str]:
    for part in key:
        yield UNKNOWN if part is None else part


def numbers(entry: Change) -> tuple[str, ...]:
    """Spell one change."""
    return (
        entry.status,
        duration(entry.a_ns) if entry.a else UNKNOWN,
        duration(entry.b_ns) if entry.b else UNKNOWN,
        _signed(duration(entry.delta_ns), entry.delta_ns),
        change(entry.relative) if entry.b else UNKNOWN,
        *(count(side.calls) if side else UNKNOWN for side in (entry.a, entry.b)),
    )
