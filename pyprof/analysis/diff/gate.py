"""Limits on changes, in the syntax of `--fail-if`.

`time>+3%`, `kernels>0` and `step>5ms` limit the size of a change. `slower>5%` (of the step) and
`op>10%` (of any op) do so for changes beyond noise. `significant` allows no slowdown beyond noise.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeAlias

from pyprof.analysis.diff.causes import replaced
from pyprof.analysis.diff.compare import METRICS
from pyprof.answers.diff_answer import SAME_BELOW
from pyprof.quantities import amount, change, duration, number

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from pyprof.answers.diff_answer import Diff, Measure

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


class Violation(NamedTuple):
    """What exceeds a limit, or why that could not be checked."""

    sentence: str
    certain: bool
    """Whether the limit was checked."""


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

    def violation(self, comparison: HasMetrics) -> Violation | None:
        """Say in a sentence what exceeds the limit; None if nothing does.

        A metric that is unknown in one capture, or known for many more of its rows than in the
        other, fails too: it could not be checked. In %, a change from 0 is infinite.
        """
        measure = comparison.metrics[self.metric]
        increase = measure.change
        if increase is None:
            problem = (
                "unknown in one of the captures"
                if None in (measure.a, measure.b)
                else "known for different shares of the rows"
            )
            why = f"cannot be checked: {_name(self.metric)} is {problem}"
            return Violation(f"{self.text}: {why}", certain=False)
        if self.relative and increase:
            increase = increase / measure.a if measure.a else math.copysign(math.inf, increase)
        if increase > self.value if self.above else increase < self.value:
            return Violation(f"{self.text}: {_describe_change(self.metric, measure)}", certain=True)
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

    def violation(self, diff: Diff) -> Violation | None:
        """Say what is slower; None if nothing is, or it may be noise."""
        steps = diff.per_step and diff.metrics["step_ns"].change is not None
        metric = "step_ns" if steps else "time_ns"
        measure = diff.metrics[metric]
        increase = measure.change_share if self.relative else measure.change
        if increase is None or (self.strict and measure.significant is None):
            why = diff.noise.why or f"{_name(metric)} is unknown in one of the captures"
            return Violation(f"{self.text}: cannot be checked: {why}", certain=False)
        if increase <= self.value or measure.significant is False:
            return None
        how = "significant" if measure.significant else f"noise is unknown: {diff.noise.why}"
        described = _describe_change(metric, measure)
        return Violation(f"{self.text}: {described}; {how}", certain=True)


@dataclass(frozen=True, slots=True)
class OpSlowdown:
    """A limit on how much longer any op takes, beyond noise where that is known."""

    text: str
    value: float
    """A fraction of the op's time in the first capture where `relative`, else ns."""
    relative: bool

    def violation(self, diff: Diff) -> Violation | None:
        """Name the op that is beyond the limit and costs most, and how many there are."""
        beyond = [
            one
            for one in _slower_ops(diff)
            if (one.share if self.relative else one.delta_ns) > self.value
        ]
        if not beyond:
            return None
        first = max(beyond, key=lambda one: one.delta_ns)
        how = "new" if math.isinf(first.share) else change(first.share)
        how += ", different shapes or types" if first.reshaped else ""
        more = f", and {len(beyond) - 1} more" if len(beyond) > 1 else ""
        increase = f"+{duration(first.delta_ns)} ({how}){more}"
        return Violation(f"{self.text}: {first.name} changed by {increase}", certain=True)


class _SlowerOp(NamedTuple):
    name: str
    delta_ns: float
    """How much longer it takes."""
    share: float
    """The same as a fraction of its time in A; infinite if it is new."""
    reshaped: bool = False
    """Whether it has different shapes or types than in A."""


def _slower_ops(diff: Diff) -> Iterator[_SlowerOp]:
    """Yield the ops that take longer in B, beyond noise where that is known.

    New and removed entries of an op that differ only in shape or type are taken together. An op
    that is only new counts if it takes more than 1 % of A's time.
    """
    for entry in diff.changes:
        if entry.status == "slower":
            share = math.inf if entry.change_share is None else entry.change_share
            yield _SlowerOp(_format_key(entry.key.values()), entry.change_ns, share)
    total_ns = sum(one.a_ns or 0.0 for one in diff.changes)
    for key, changes in replaced(diff.changes).items():
        a_ns = sum(one.a_ns or 0.0 for one in changes)
        b_ns = sum(one.b_ns or 0.0 for one in changes)
        chance_ns = math.hypot(*(one.half_ns for one in changes if one.half_ns))
        least_ns = SAME_BELOW * (a_ns or total_ns)
        if b_ns and b_ns - a_ns > max(chance_ns, least_ns):
            share = (b_ns - a_ns) / a_ns if a_ns else math.inf
            yield _SlowerOp(_format_key(key), b_ns - a_ns, share, reshaped=a_ns > 0)


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
    violations = [*filter(None, (each.violation(diff) for each in checks))]
    failed = tuple(each.sentence for each in violations)
    return replace(diff, failed=failed), any(each.certain for each in violations)


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
