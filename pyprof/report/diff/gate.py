"""Limits on what may change, as `--fail-if` writes them: `time>+3%`, `kernels>0`, `step>5ms`."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyprof.report.diff.compare import METRICS
from pyprof.report.render.text import change, duration, number

if TYPE_CHECKING:
    from pyprof.report.diff.compare import Comparison, Metric

_LIMIT = re.compile(
    r"\s*(?P<name>[a-z]+)\s*(?P<sign>[<>])\s*(?P<value>[+-]?\d+(?:\.\d+)?)\s*(?P<unit>%|ns|us|ms|s|)\s*"
)
_TIMES = ("time", "busy", "idle", "step")
_UNITS = {"%": 0.01, "ns": 1.0, "us": 1e3, "ms": 1e6, "s": 1e9, "": 1.0}


@dataclass(frozen=True, slots=True)
class Limit:
    """A change of a metric that must not be."""

    text: str
    name: str
    above: bool
    value: float
    """A fraction of the first capture's where `relative`, else in the metric's unit."""
    relative: bool

    def grown(self, comparison: Comparison) -> float | None:
        """Give by how much the metric changed; None where that cannot be told."""
        metric = comparison.metrics[self.name]
        return metric.relative if self.relative else metric.delta

    def broken(self, comparison: Comparison) -> str | None:
        """Say in a sentence what is beyond the limit; None where it is kept.

        A metric that one of the captures does not know, or knows of many more of its rows, breaks
        it: nothing was checked.
        """
        metric, grown = comparison.metrics[self.name], self.grown(comparison)
        if grown is None:
            problem = (
                "unknown in one of the captures"
                if metric.comparable
                else "known for different shares of the rows"
            )
            return f"{self.text}: cannot be checked: {self.name} is {problem}"
        if grown > self.value if self.above else grown < self.value:
            return f"{self.text}: {self.name} changed by {_spelt(metric)}"
        return None


def parse(text: str) -> Limit:
    """Read a limit. Raises ValueError, with what to write instead."""
    match = _LIMIT.fullmatch(text)
    if match is None or match["name"] not in METRICS:
        raise ValueError(
            f"{text!r} is not a limit; write METRIC>NUMBER or METRIC<NUMBER with a unit of %, ns, "
            f"us, ms or s, as in 'time>+3%'; metrics are {', '.join(METRICS)}"
        )
    if match["unit"] in ("ns", "us", "ms", "s") and match["name"] not in _TIMES:
        raise ValueError(f"{text!r}: {match['name']} is not a time; write a number or %")
    value = float(match["value"]) * _UNITS[match["unit"]]
    return Limit(text.strip(), match["name"], match["sign"] == ">", value, match["unit"] == "%")


def _spelt(metric: Metric) -> str:
    delta = metric.delta or 0.0
    spelt = duration(delta) if metric.unit == "ns" else number(delta)
    return f"{'+' if delta > 0 else ''}{spelt} ({change(metric.relative)})"
