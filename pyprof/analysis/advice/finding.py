"""Advice, the evidence that it rests on, and how that of several captures is merged."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from pyprof.analysis.summary.op_totals import longest_rows
from pyprof.answers.parts import Finding, Suggestion
from pyprof.arrays import ratio_if_known

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from numpy.typing import NDArray

    from pyprof.answers.parts import PredictedGain
    from pyprof.arrays import Int64Array

MAX_IDS = 10
"""Maximum number of rows that a finding names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Advice:
    """Something that the user could change."""

    rule: str = ""
    """Name of the rule, its function, by which it is registered."""
    title: str
    """What was found."""
    action: str
    """What to do."""
    gain_ns: int | None
    """The most time that the GPU with the largest gain could save; None if unknown. Gains of
    different advice overlap.
    """
    evidence: tuple[Finding, ...]
    """The longest first."""
    rows: Int64Array = field(default_factory=lambda: np.zeros(0, np.int64))
    """Rows of the table that it rests on, from 0; empty if the evidence is not rows."""
    predicted: PredictedGain | None = None
    """The gain as an interval, where the rule was tried on real changes."""
    of_ns: int = 0
    """The time that the gain is a part of: the loop's, or that of the whole capture."""
    steps: int | None = None
    """How many steps that time has; None without steps, and for what happens once."""
    once: bool = False
    """The gain is in start-up, warm-up or after the loop: once a run, not in every step."""
    if_ranks_wait: str | None = None
    """What to do where the sums of all ranks show that most of this time is waiting for one."""

    @property
    def likely_ns(self) -> int:
        """The middle of the predicted gain; without one, the upper bound; 0 if unknown."""
        return self.predicted.middle_ns if self.predicted else self.gain_ns or 0


def group_findings(
    what: pa.Array,
    line: pa.Array,
    detail: Sequence[str] | None,
    ns: NDArray[np.float64] | Int64Array,
    rows: Int64Array | None = None,
) -> tuple[Finding, ...]:
    """Add up the times of equal rows or calls, the longest first; of `rows` each names some."""
    keys = ["what", "line", "detail"]
    details = [""] * len(ns) if detail is None else detail
    data = pa.table({"what": what, "line": line, "detail": details, "ns": ns})
    grouped = data.group_by(keys, use_threads=False).aggregate([("ns", "sum"), ("ns", "count")])
    ids = {}
    if rows is not None:
        longest = longest_rows(data.append_column("idx", pa.array(rows + 1)), keys, MAX_IDS)
        ids = {key: tuple(dict.fromkeys(idx for _, idx in each)) for key, each in longest.items()}
    findings = [
        Finding(
            what=row["what"],
            line=row["line"],
            detail=row["detail"],
            count=row["ns_count"],
            time_ns=int(row["ns_sum"]),
            row_ids=ids.get(tuple(row[key] for key in keys), ()),
        )
        for row in grouped.to_pylist()
    ]
    return tuple(sorted(findings, key=lambda e: (-e.time_ns, e.what, e.line or "", e.detail)))


@dataclass(frozen=True, slots=True)
class AdviceSums:
    """Advice on one capture, or on several merged ones; small enough to send."""

    entries: tuple[Advice, ...]
    """Advice, without its rows."""
    row_count: int
    """Number of rows of the capture: rows of the next one are numbered from there on."""

    def merged(self, other: AdviceSums) -> AdviceSums:
        """Join the advice of each rule: GPUs work side by side, so the larger gain counts.

        The wording is from the capture with more to gain.
        """
        merged: dict[tuple[str, bool], Advice] = {}
        for entry in (*self.entries, *_renumber(other.entries, self.row_count)):
            key = entry.rule, entry.once
            merged[key] = _merge_advice(merged[key], entry) if key in merged else entry
        return AdviceSums(tuple(in_order(merged.values())), self.row_count + other.row_count)

    def with_waits(self, waited_ns: int | None, steps: int | None) -> AdviceSums:
        """Choose the actions for ranks that wait for another, so long; None if they do not."""
        entries = (
            replace(entry, action=entry.if_ranks_wait, gain_ns=waited_ns, steps=steps)
            if entry.if_ranks_wait and waited_ns is not None and not entry.once
            else entry
            for entry in self.entries
        )
        return replace(self, entries=tuple(entries))

    @property
    def suggestions(self) -> tuple[Suggestion, ...]:
        """The advice in the form of an answer."""
        return tuple(
            Suggestion(
                rule=entry.rule,
                title=entry.title,
                action=entry.action,
                gain_ns=entry.gain_ns,
                gain_step_ns=ratio_if_known(entry.gain_ns, entry.steps),
                gain_share=ratio_if_known(entry.gain_ns, entry.of_ns),
                predicted=entry.predicted,
                evidence=entry.evidence,
                once=entry.once,
            )
            for entry in self.entries
        )


def _renumber(entries: Iterable[Advice], before: int) -> Iterator[Advice]:
    for entry in entries:
        evidence = (
            replace(part, row_ids=tuple(before + row for row in part.row_ids))
            for part in entry.evidence
        )
        yield replace(entry, evidence=tuple(evidence))


def in_order(entries: Iterable[Advice]) -> list[Advice]:
    """Sort by likely gain, the largest first, unknown ones last; what happens once comes last."""
    return sorted(entries, key=lambda entry: (entry.once, -entry.likely_ns, entry.rule))


def _merge_advice(a: Advice, b: Advice) -> Advice:
    more = max(a, b, key=_size)
    evidence: dict[tuple[str, str | None, str], Finding] = {}
    for entry in (*a.evidence, *b.evidence):
        key = (entry.what, entry.line, entry.detail)
        other = evidence.get(key)
        evidence[key] = entry if other is None else replace(
            other,
            count=other.count + entry.count,
            time_ns=other.time_ns + entry.time_ns,
            row_ids=(*other.row_ids, *entry.row_ids)[:MAX_IDS],
        )  # fmt: skip
    longest = sorted(
        evidence.values(), key=lambda entry: (-entry.time_ns, entry.what, entry.line or "")
    )
    return replace(more, evidence=tuple(longest))


def _size(entry: Advice) -> tuple[Any, ...]:
    """Sort key of advice by one rule; equal only where either may stand for both."""
    known = entry.gain_ns is not None
    texts = (entry.title, entry.action, repr(entry.predicted))
    return entry.likely_ns, known, entry.gain_ns or 0, entry.steps or 0, entry.of_ns, texts
