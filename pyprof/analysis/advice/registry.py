"""The registry of rules, which the modules of this package define, by subject."""

from __future__ import annotations

import pkgutil
from dataclasses import dataclass, replace
from importlib import import_module
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from pyprof.analysis.advice.finding import MAX_IDS
from pyprof.answers.parts import Suggestion

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from pyprof.analysis.advice.finding import Advice
    from pyprof.analysis.advice.rule_context import RuleContext
    from pyprof.answers.parts import Finding

_Find: TypeAlias = "Callable[[RuleContext], Advice | None]"


class Rule(NamedTuple):
    """A rule of advice."""

    find: _Find
    """Returns None if there is no evidence."""
    refuted_by: tuple[str, ...]
    """What only looks like evidence, or would make the advice untrue: it then finds nothing."""
    about: str
    """What it looks at."""
    needs: tuple[str, ...]
    """What it cannot do without, as constants of `pyprof.analysis.advice.scope`."""


_RULES: dict[str, Rule] = {}


def rule(*refuted_by: str, about: str, needs: Sequence[str] = ()) -> Callable[[_Find], _Find]:
    """Register a function as a rule under its name, with the fields of `Rule`."""

    def register(find: _Find) -> _Find:
        name = find.__name__
        if name in _RULES:
            raise ValueError(f"there is a rule {name} already")
        _RULES[name] = Rule(find, refuted_by, about, tuple(needs))
        return find

    return register


def rules() -> dict[str, Rule]:
    """Load and return all rules, by name."""
    package = __name__.rpartition(".")[0]
    for module in pkgutil.iter_modules(import_module(package).__path__):
        import_module(f"{package}.{module.name}")
    return dict(sorted(_RULES.items()))


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
        for entry in (*self.entries, *_renumbered(other.entries, self.row_count)):
            key = entry.rule, entry.once
            merged[key] = _plus(merged[key], entry) if key in merged else entry
        return AdviceSums(tuple(in_order(merged.values())), self.row_count + other.row_count)

    @property
    def suggestions(self) -> tuple[Suggestion, ...]:
        """The advice in the form of an answer."""
        return tuple(
            Suggestion(
                rule=entry.rule,
                title=entry.title,
                action=entry.action,
                gain_ns=entry.gain_ns,
                gain_step_ns=_over(entry.gain_ns, entry.steps),
                gain_share=_over(entry.gain_ns, entry.of_ns),
                predicted=entry.predicted,
                evidence=entry.evidence,
                once=entry.once,
            )
            for entry in self.entries
        )


def _over(gain_ns: int | None, total_ns: int | None) -> float | None:
    return gain_ns / total_ns if gain_ns is not None and total_ns else None


def _renumbered(entries: Iterable[Advice], before: int) -> Iterator[Advice]:
    for entry in entries:
        evidence = (
            replace(part, row_ids=tuple(before + row for row in part.row_ids))
            for part in entry.evidence
        )
        yield replace(entry, evidence=tuple(evidence))


def in_order(entries: Iterable[Advice]) -> list[Advice]:
    """Sort by likely gain, the largest first, unknown ones last; what happens once comes last."""
    return sorted(entries, key=lambda entry: (entry.once, -entry.likely_ns, entry.rule))


def _plus(a: Advice, b: Advice) -> Advice:
    more = max(a, b, key=lambda each: (each.likely_ns, each.title, each.action))
    gains = [each.gain_ns for each in (a, b) if each.gain_ns is not None]
    gain_ns = more.gain_ns if more.predicted else max(gains, default=None)
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
    return replace(more, gain_ns=gain_ns, evidence=tuple(longest))
