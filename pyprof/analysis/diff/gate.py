"""Limits on changes, in the syntax of `--fail-if`.

`time>+3%`, `kernels>0` and `step>5ms` limit the size of a change. `slower>5%` (of the step) and
`op>10%` (of any op) do so for changes beyond noise. `significant` allows no slowdown beyond noise.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol, TypeAlias

from pyprof.analysis.diff.causes import replaced
from pyprof.analysis.diff.compare import METRICS
from pyprof.answers.diff_answer import SAME_BELOW
from pyprof.quantities import amount, change, duration, number

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from pyprof.answers.diff_answer import Change, Diff, Measure

_LIMIT = re.compile(
    r"\s*(?P<name>[a-z]+)\s*(?P<sign>[<>])\s*(?P<value>[+-]?\d+(?:\.\d+)?)\s*(?P<unit>%|ns|us|ms|s|)\s*"
)
_TIMES = ("time", "busy", "idle", "exposed", "step")
_UNITS = {"%": 0.01, "ns": 1.0, "us": 1e3, "ms": 1e6, "s": 1e9, "": 1.0}


class HasMetrics(Protocol):
    """A comparison of numbers of two captures."""

    @property
    def metrics(self) -> Mapping[str, Measure]:
        """The numbers, by name; the name ends with the unit."""


@dataclass(frozen=True, slots=True)
class Limit:
    """A limit on the change of a metric."""

    text: str
    metric: str
    """Its name in the answer, with its unit."""
    above: bool
    value: float
    """A fraction of the first capture's where `relative`, else in the metric's unit."""
    relative: bool

    def increase(self, comparison: HasMetrics) -> float | None:
        """Return how much the metric changed; infinitely, in %, from 0; None if unknown."""
        measure = comparison.metrics[self.metric]
        if not self.relative or not measure.change:
            return measure.change
        return measure.change_share if measure.a else math.copysign(math.inf, measure.change)

    def violation(self, comparison: HasMetrics) -> str | None:
        """Say in a sentence what exceeds the limit; None if nothing does.

        A metric that is unknown in one capture, or known for many more of its rows than in the
        other, fails too: it could not be checked.
        """
        measure, increase = comparison.metrics[self.metric], self.increase(comparison)
        if increase is None:
            problem = (
                "unknown in one of the captures"
                if None in (measure.a, measure.b)
                else "known for different shares of the rows"
            )
            return f"{self.text}: cannot be checked: {_name(self.metric)} is {problem}"
        if increase > self.value if self.above else increase < self.value:
            return f"{self.text}: {_describe_change(self.metric, measure)}"
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

    def increase(self, diff: Diff) -> float | None:
        """Return how much longer it takes; None if that, or with `strict` the noise, is unknown."""
        measure = diff.metrics[_main_metric(diff)]
        if self.strict and measure.significant is None:
            return None
        return measure.change_share if self.relative else measure.change

    def violation(self, diff: Diff) -> str | None:
        """Say what is slower; None if nothing is, or it may be noise."""
        metric, increase = _main_metric(diff), self.increase(diff)
        if increase is None:
            why = diff.noise.why or f"{_name(metric)} is unknown in one of the captures"
            return f"{self.text}: cannot be checked: {why}"
        measure = diff.metrics[metric]
        if increase <= self.value or measure.significant is False:
            return None
        how = "significant" if measure.significant else f"noise is unknown: {diff.noise.why}"
        return f"{self.text}: {_describe_change(metric, measure)}; {how}"


def _main_metric(diff: Diff) -> str:
    """Name the metric of the step; without steps, of the summed time."""
    steps = diff.per_step and diff.metrics["step_ns"].change is not None
    return "step_ns" if steps else "time_ns"


@dataclass(frozen=True, slots=True)
class OpSlowdown:
    """A limit on how much longer any op takes, beyond noise where that is known."""

    text: str
    value: float
    """A fraction of the op's time in the first capture where `relative`, else ns."""
    relative: bool

    def increase(self, diff: Diff) -> float | None:
        """Return the largest growth of an op; 0 if none takes longer."""
        return max((self._size(one) for one in slower_ops(diff)), default=0.0)

    def violation(self, diff: Diff) -> str | None:
        """Name the op that is beyond the limit and costs most, and how many there are."""
        beyond = [one for one in slower_ops(diff) if self._size(one) > self.value]
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
    """Whether it has different shapes or types than in A."""

    @property
    def delta_ns(self) -> float:
        """How much longer it takes."""
        return self.b_ns - self.a_ns

    @property
    def how(self) -> str:
        """The increase in percent, or that the op is new."""
        if not self.a_ns:
            return "new"
        return change(self.delta_ns / self.a_ns) + (
            ", different shapes or types" if self.other else ""
        )


def slower_ops(diff: Diff) -> list[SlowerOp]:
    """List the ops that take longer in B, beyond noise where that is known.

    New and removed entries of an op that differ only in shape or type are taken together. An op
    that is only new counts if it takes more than 1 % of A's time.
    """
    slower = [
        SlowerOp(_format_key(entry.key.values()), *_sum_times([entry]))
        for entry in diff.changes
        if entry.status == "slower"
    ]
    total_ns, _ = _sum_times(diff.changes)
    for key, changes in replaced(diff.changes).items():
        a_ns, b_ns = _sum_times(changes)
        chance_ns = math.hypot(*(one.half_ns for one in changes if one.half_ns))
        least_ns = SAME_BELOW * (a_ns or total_ns)
        if b_ns and b_ns - a_ns > max(chance_ns, least_ns):
            slower.append(SlowerOp(_format_key(key), a_ns, b_ns, other=a_ns > 0))
    return slower


def _sum_times(changes: Sequence[Change]) -> tuple[float, float]:
    """Add up what changes take in A, and in B."""
    return sum(one.a_ns or 0.0 for one in changes), sum(one.b_ns or 0.0 for one in changes)


def _format_key(key: Iterable[str | None]) -> str:
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
    metric, above = METRICS[match["name"]], match["sign"] == ">"
    return Limit(text.strip(), metric, above, value, match["unit"] == "%")


def check(checks: Iterable[Check], diff: Diff) -> tuple[Diff, bool]:
    """Return the answer with the limits that it exceeds; and whether it surely exceeds any."""
    results = [(each.violation(diff), each.increase(diff)) for each in checks]
    failed = tuple(sentence for sentence, _ in results if sentence is not None)
    exceeded = any(sentence and increase is not None for sentence, increase in results)
    return replace(diff, failed=failed), exceeded


_FORMATS: Mapping[str, Callable[[float], str]] = {
    "ns": duration,
    "bytes": lambda value: amount(value, "B"),
}


def _name(metric: str) -> str:
    """Return the name of a metric without its unit."""
    return metric.partition("_")[0]


def _describe_change(metric: str, measure: Measure) -> str:
    delta = measure.change or 0.0
    formatted = _FORMATS.get(metric.rpartition("_")[2], number)(delta)
    relative = change(measure.change_share) if measure.a else "from 0"
    return f"{_name(metric)} changed by {'+' if delta > 0 else ''}{formatted} ({relative})"
