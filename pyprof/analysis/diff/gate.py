"""Limits on changes, in the syntax of `--fail-if`.

`time>+3%`, `kernels>0` and `step>5ms` limit the size of a change. `slower>5%` (of the step) and
`op>10%` (of any op) do so for changes beyond noise. `significant` allows no slowdown beyond noise.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, TypeAlias

from pyprof.analysis.diff.compare import METRICS, SLOWER
from pyprof.answers.diff_answer import SAME_BELOW
from pyprof.quantities import amount, change, duration, number

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pyprof.analysis.diff.compare import Comparison, Metric
    from pyprof.analysis.diff.side import Key

_LIMIT = re.compile(
    r"\s*(?P<name>[a-z]+)\s*(?P<sign>[<>])\s*(?P<value>[+-]?\d+(?:\.\d+)?)\s*(?P<unit>%|ns|us|ms|s|)\s*"
)
_TIMES = ("time", "busy", "idle", "step")
_UNITS = {"%": 0.01, "ns": 1.0, "us": 1e3, "ms": 1e6, "s": 1e9, "": 1.0}


class HasMetrics(Protocol):
    """A comparison of numbers of two captures."""

    @property
    def metrics(self) -> Mapping[str, Metric]:
        """The numbers, by name."""


@dataclass(frozen=True, slots=True)
class Limit:
    """A limit on the change of a metric."""

    text: str
    name: str
    above: bool
    value: float
    """A fraction of the first capture's where `relative`, else in the metric's unit."""
    relative: bool

    def increase(self, comparison: HasMetrics) -> float | None:
        """Return how much the metric changed; None if unknown."""
        metric = comparison.metrics[self.name]
        return metric.relative if self.relative else metric.delta

    def violation(self, comparison: HasMetrics) -> str | None:
        """Say in a sentence what exceeds the limit; None if nothing does.

        A metric that is unknown in one capture, or known for many more of its rows than in the
        other, fails too: it could not be checked.
        """
        metric, increase = comparison.metrics[self.name], self.increase(comparison)
        if increase is None:
            problem = (
                "unknown in one of the captures"
                if None in (metric.a, metric.b)
                else "known for different shares of the rows"
                if not metric.comparable
                else "0 in the first, of which there are no percents"
            )
            return f"{self.text}: cannot be checked: {self.name} is {problem}"
        if increase > self.value if self.above else increase < self.value:
            return f"{self.text}: {self.name} changed by {_spelt(metric)}"
        return None


@dataclass(frozen=True, slots=True)
class Slowdown:
    """A limit on how much longer a step takes beyond noise; without steps, the summed time.

    If noise is unknown, size alone decides, unless `strict`: then nothing can be checked.
    """

    text: str
    value: float
    """A fraction of the first capture's where `relative`, else ns."""
    relative: bool
    strict: bool = False

    def increase(self, comparison: Comparison) -> float | None:
        """Return how much longer it takes; None if that, or with `strict` the noise, is unknown."""
        metric = _main(comparison)
        if self.strict and metric.interval is None:
            return None
        return metric.relative if self.relative else metric.delta

    def violation(self, comparison: Comparison) -> str | None:
        """Say what is slower; None if nothing is, or it may be noise."""
        metric, increase = _main(comparison), self.increase(comparison)
        if increase is None:
            why = comparison.noise.why or f"{metric.name} is unknown in one of the captures"
            return f"{self.text}: cannot be checked: {why}"
        if increase <= self.value or (metric.interval and not metric.interval.significant):
            return None
        how = "significant" if metric.interval else f"noise is unknown: {comparison.noise.why}"
        return f"{self.text}: {metric.name} changed by {_spelt(metric)}; {how}"


def _main(comparison: Comparison) -> Metric:
    step = comparison.metrics["step"]
    return step if comparison.per_step and step.delta is not None else comparison.metrics["time"]


@dataclass(frozen=True, slots=True)
class OpSlowdown:
    """A limit on how much longer any op takes, beyond noise where that is known."""

    text: str
    value: float
    """A fraction of the op's time in the first capture where `relative`, else ns."""
    relative: bool

    def increase(self, comparison: Comparison) -> float | None:
        """Return the largest growth of an op; 0 if none takes longer."""
        return max((self._size(one) for one in slower_ops(comparison)), default=0.0)

    def violation(self, comparison: Comparison) -> str | None:
        """Name the op that is beyond the limit and costs most, and how many there are."""
        beyond = [one for one in slower_ops(comparison) if self._size(one) > self.value]
        if not beyond:
            return None
        first = max(beyond, key=lambda one: one.delta_ns)
        more = f", and {len(beyond) - 1} more" if len(beyond) > 1 else ""
        increase = f"+{duration(first.delta_ns)} ({first.how})"
        return f"{self.text}: {first.name} changed by {increase}{more}"

    def _size(self, one: SlowerOp) -> float:
        if not self.relative:
            return one.delta_ns
        return one.delta_ns / one.a_ns if one.a_ns else math.inf


@dataclass(frozen=True, slots=True)
class SlowerOp:
    """An op that takes longer, or is new."""

    name: str
    a_ns: float
    """0 if it is new."""
    b_ns: float
    other: bool = False
    """Whether it has other shapes or types than in A."""

    @property
    def delta_ns(self) -> float:
        """How much longer it takes."""
        return self.b_ns - self.a_ns

    @property
    def how(self) -> str:
        """The increase in percent, or that the op is new."""
        if not self.a_ns:
            return "new"
        return change(self.delta_ns / self.a_ns) + (", other shapes or types" if self.other else "")


def slower_ops(comparison: Comparison) -> list[SlowerOp]:
    """List the ops that take longer in B, beyond noise where that is known.

    New and removed entries of an op that differ only in shape or type are taken together. An op
    that is only new counts if it takes more than 1 % of A's time.
    """
    slower = [
        SlowerOp(_named(entry.key), entry.a_ns, entry.b_ns)
        for entry in comparison.changes
        if entry.status == SLOWER
    ]
    total_ns = sum(entry.a_ns for entry in comparison.changes)
    for key, changes in comparison.replaced.items():
        a_ns, b_ns = (sum(getattr(one, side) for one in changes) for side in ("a_ns", "b_ns"))
        chance_ns = math.hypot(*(one.interval.half for one in changes if one.interval))
        least_ns = SAME_BELOW * (a_ns or total_ns)
        if b_ns and b_ns - a_ns > max(chance_ns, least_ns):
            slower.append(SlowerOp(_named(key), a_ns, b_ns, other=a_ns > 0))
    return slower


def _named(key: Key) -> str:
    return " ".join(part for part in key if part) or "what no op names"


Check: TypeAlias = "Limit | Slowdown | OpSlowdown"
"""A limit that a comparison may violate."""

_SLOWER = re.compile(
    r"\s*(?P<name>slower|op)\s*>\s*(?P<value>\+?\d+(?:\.\d+)?)\s*(?P<unit>%|ns|us|ms|s)\s*"
)
SIGNIFICANT = "significant"


def parse(text: str) -> Check:
    """Read a limit. Raises ValueError, with what to write instead."""
    if text.strip() == SIGNIFICANT:
        return Slowdown(SIGNIFICANT, 0.0, relative=False, strict=True)
    if (match := _SLOWER.fullmatch(text)) is not None:
        kind = Slowdown if match["name"] == "slower" else OpSlowdown
        return kind(
            text.strip(), float(match["value"]) * _UNITS[match["unit"]], match["unit"] == "%"
        )
    match = _LIMIT.fullmatch(text)
    if match is None or match["name"] not in METRICS:
        raise ValueError(
            f"{text!r} is not a limit; write 'slower>5%', 'op>10%', 'significant', or "
            "METRIC>NUMBER or METRIC<NUMBER with a unit of %, ns, us, ms or s, as in 'time>+3%'; "
            f"metrics are {', '.join(METRICS)}"
        )
    if match["unit"] in ("ns", "us", "ms", "s") and match["name"] not in _TIMES:
        raise ValueError(f"{text!r}: {match['name']} is not a time; write a number or %")
    value = float(match["value"]) * _UNITS[match["unit"]]
    if value and not match["unit"] and match["name"] in _TIMES:
        raise ValueError(f"{text!r}: {match['name']} is a time; write % or a unit: ns, us, ms, s")
    return Limit(text.strip(), match["name"], match["sign"] == ">", value, match["unit"] == "%")


_SPELLINGS: Mapping[str, Callable[[float], str]] = {
    "ns": duration,
    "bytes": lambda value: amount(value, "B"),
}


def _spelt(metric: Metric) -> str:
    delta = metric.delta or 0.0
    spelt = _SPELLINGS.get(metric.unit, number)(delta)
    relative = "-" if metric.relative is None else change(metric.relative)
    return f"{'+' if delta > 0 else ''}{spelt} ({relative})"
